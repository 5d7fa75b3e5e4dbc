// What nobody sees in a text that a person approves, or what turns it around, made visible: as synapsed/shared/visible.py has it.

const UNSEEN = "[\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u206f\\u3164"
  + "\\ufe00-\\ufe0d\\ufeff\\uffa0\\ufff0-\\ufffb\\u{1d173}-\\u{1d17a}\\u{e0000}-\\u{e0fff}]";
const SIGNS = "\\u00a9\\u00ae\\u203c-\\u3299\\u{1f000}-\\u{1faff}";
const JOINED = "\\u0600-\\u0dff";
const PATTERN = new RegExp([
  "[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\ud800-\\udfff]",
  UNSEEN,
  `(?<![${JOINED}])\\u200c|\\u200c(?![${JOINED}])`,
  `(?<![${JOINED}${SIGNS}\\ufe0f])\\u200d|\\u200d(?![${JOINED}${SIGNS}])`,
  `(?<![${SIGNS}])(?<![0-9#*](?=\\ufe0f\\u20e3))[\\ufe0e\\ufe0f]`,
].join("|"), "gu");

/** @param {string} text */
export function visible(text) {
  return text.replace(PATTERN, (one) => {
    const code = one.codePointAt(0) ?? 0;
    const hex = (/** @type {number} */ digits) => code.toString(16).padStart(digits, "0");
    return code < 0x100 ? `\\x${hex(2)}` : code < 0x10000 ? `\\u${hex(4)}` : `\\U${hex(8)}`;
  });
}
