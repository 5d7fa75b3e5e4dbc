# Untried: synapsed was never run on macOS (README.md beside this file).
class Synapsed < Formula
  desc "Daemon that keeps command-line agents running, reachable over A2A"
  url "@URL@", using: :nounzip
  version "@VERSION@"
  sha256 "@SHA256@"
  license "MIT"

  depends_on "python@3.13"

  def install
    wheel = buildpath/"synapsed-#{version}-py3-none-any.whl"
    mv Dir["*.whl"].first, wheel unless wheel.exist?
    system formula_opt_bin, "-m", "venv", libexec
    system libexec/"bin/python", "-m", "pip", "install", "--prefer-binary", wheel
    bin.install_symlink libexec/"bin/synapsed", libexec/"bin/synapsectl"
    man1.install_symlink libexec/"share/man/man1/synapsectl.1"
    generate_completions_from_executable(bin/"synapsectl", "completion", shells: [:bash, :zsh, :fish])
  end

  def formula_opt_bin
    Formula["python@3.13"].opt_bin/"python3.13"
  end

  test do
    assert_match "synapsed #{version}", shell_output("#{bin}/synapsed --version")
    ENV["SYNAPSED_HOME"] = testpath
    system bin/"synapsectl", "start", "dummy"
    assert_equal "cba\n", shell_output("#{bin}/synapsectl send dummy 'reverse abc' --wait")
  ensure
    system bin/"synapsectl", "shutdown"
  end
end
