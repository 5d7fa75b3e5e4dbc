// Tells what the terminal understands of each line of hexadecimal bytes on its input: all that has a handler, and what
// it answers. Nothing is kept from its own handlers.
const { Terminal } = require(process.argv[2]);
const { createInterface } = require("node:readline");

const windowOptions = Object.fromEntries(
  ["restoreWin", "minimizeWin", "setWinPosition", "setWinSizePixels", "raiseWin", "lowerWin", "refreshWin",
    "setWinSizeChars", "maximizeWin", "fullscreenWin", "getWinState", "getWinPosition", "getWinSizePixels",
    "getScreenSizePixels", "getCellSizePixels", "getWinSizeChars", "getScreenSizeChars", "getIconTitle", "getWinTitle",
    "pushTitle", "popTitle", "setWinLines"].map((name) => [name, true]));
const terminal = new Terminal({ cols: 80, rows: 24, allowProposedApi: true, windowOptions, logLevel: "off" });
let told = [];
const note = (kind, name, body) => { told.push([kind, name, body]); return false; };

const between = ["", ..." !\"#$%&'()*+,-./"];
const finals = (from) => Array.from({ length: 0x7f - from }, (_, at) => String.fromCharCode(from + at));
for (const intermediates of between) {
  for (const final of finals(0x30)) {
    if (intermediates !== "" || !"PX[]^_".includes(final)) {
      terminal.parser.registerEscHandler({ intermediates, final }, () => note("esc", intermediates + final, ""));
    }
  }
  for (const prefix of [undefined, "<", "=", ">", "?"]) {
    for (const final of finals(0x40)) {
      const name = (prefix ?? "") + intermediates + final;
      const id = { prefix, intermediates, final };
      terminal.parser.registerCsiHandler(id, (params) => note("csi", name, JSON.stringify(params)));
      terminal.parser.registerDcsHandler(id, (body, params) => note("dcs", name, JSON.stringify(params) + body));
    }
  }
}
for (let number = 0; number < 10000; number++) {
  terminal.parser.registerOscHandler(number, (body) => note("osc", String(number), body));
}
const inner = terminal._core._inputHandler._parser;
inner.setOscHandlerFallback((number, action, body) => { if (action === "END") note("osc", String(number), String(body)); });
inner.setExecuteHandlerFallback((code) => note("execute", String(code), ""));
terminal.onData((data) => note("answer", "", data));
terminal.onBinary((data) => note("answer", "", data));
terminal._core._inputHandler.onColor?.((events) => {
  for (const event of events) if (event.type === 0) note("answer", "color", String(event.index));
});

(async () => {
  for await (const line of createInterface({ input: process.stdin })) {
    await new Promise((done) => terminal.write("\x18\x1b\\", done));
    terminal.reset();
    told = [];
    await new Promise((done) => terminal.write(Buffer.from(line, "hex"), done));
    process.stdout.write(JSON.stringify(told) + "\n");
  }
})();
