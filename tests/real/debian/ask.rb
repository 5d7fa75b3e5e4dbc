# Asks in one way, the argument, and prints what was answered.
library, kind = ARGV[0].split
PARTS = %w[Auth Storage Mail]

def tty(kind)
  require 'tty-prompt'
  prompt = TTY::Prompt.new
  case kind
  when 'select' then prompt.select('Which part do you want?', PARTS)
  when 'multi' then prompt.multi_select('Which parts do you want?', PARTS)
  when 'yes' then prompt.yes?('Do you like Ruby?')
  when 'mask' then prompt.mask('What is your secret?')
  when 'enum' then prompt.enum_select('Select a part:', PARTS)
  when 'slider' then prompt.slider('Volume', max: 100, step: 5)
  when 'keypress' then prompt.keypress('Press any key to continue')
  when 'expand'
    prompt.expand('Overwrite the file?', [{ key: 'y', name: 'yes', value: :yes }, { key: 'n', name: 'no', value: :no }])
  else prompt.ask('What is your name?', default: 'Ann')
  end
end

def highline(kind)
  require 'highline'
  cli = HighLine.new
  case kind
  when 'choose' then cli.choose { |menu| menu.prompt = 'Which part do you want?  '; menu.choices(*PARTS) }
  when 'agree' then cli.agree('Do you want to delete it? (yes/no) ')
  when 'secret' then cli.ask('Your password:  ') { |asked| asked.echo = '*' }
  else cli.ask('What is your name?  ')
  end
end

puts "answered #{send(library, kind).inspect}"
sleep 600
