// Code in four colours: words of the language, texts, numbers, remarks. One expression for all languages, which reads each
// character once: it is for the eye, and no language is read as its compiler does.

import { h } from "../vendor/preact.mjs";

/** @typedef {import("../vendor/preact.mjs").ComponentChild} Child */

/** Beyond that a text stays as it is. */
const LONGEST = 30_000;

const HASH = new Set("bash sh zsh shell console fish python py ruby rb yaml yml toml ini conf dockerfile make makefile perl r elixir nix".split(" "));
const DASHES = new Set("sql lua haskell hs ada".split(" "));
const PLAIN = new Set("text txt plain plaintext md markdown output log csv".split(" "));

const WORDS = new Set(("abstract and as assert async await break case catch class const continue def default del delete do done echo elif else elsif end enum esac except export extends"
  + " false False fi final finally fn for foreach from func function get global go goto if impl implements import in instanceof interface is lambda let local loop match mod module mut namespace"
  + " new nil none None nonlocal not null or package pass priv private protected pub public raise readonly ref require return self select set sizeof static struct super switch then this throw"
  + " throws trait true True try type typeof undefined union unless unsafe until use using var virtual void when where while with yield"
  + " int long short char float double bool boolean string str byte u8 u16 u32 u64 i8 i16 i32 i64 usize number any").split(" "));
const SQL = new Set("select from where insert update delete into values join left right inner outer on group by order having limit as and or not null create table index drop alter primary key set distinct union case when then else end in is like between exists begin commit rollback".split(" "));

const TEXTS = "\"(?:[^\"\\\\\\n]|\\\\[^])*\"?|'(?:[^'\\\\\\n]|\\\\[^])*'?|\\x60(?:[^\\x60\\\\]|\\\\[^])*\\x60?";
const REST = "(?<word>[\\p{L}_$][\\p{L}\\p{N}_$]*)|(?<number>\\p{N}[\\p{N}\\p{L}_.]*)";

/** @param {string} remark */
const expression = (remark) => new RegExp(`(?<remark>${remark})|(?<text>${TEXTS})|${REST}`, "gu");
const SLASHES_ONES = expression("\\/\\/[^\\n]*|\\/\\*[^]*?(?:\\*\\/|$)");
const HASH_ONES = expression("(?<![^\\s(])#[^\\n]*");
const DASH_ONES = expression("--[^\\n]*");

/** @param {string} text @param {string} language @returns {Child[]} */
export function colored(text, language) {
  const name = language.toLowerCase();
  if (text.length > LONGEST || PLAIN.has(name)) return [text];
  const sql = name === "sql";
  /** @type {Child[]} */
  const made = [];
  let at = 0;
  for (const match of text.matchAll(HASH.has(name) ? HASH_ONES : DASHES.has(name) ? DASH_ONES : SLASHES_ONES)) {
    const { remark, text: string, word, number } = match.groups ?? {};
    const kind = remark ? "remark" : string ? "text" : number ? "number" : word && (sql ? SQL.has(word.toLowerCase()) : WORDS.has(word)) ? "word" : "";
    if (!kind) continue;
    if (match.index > at) made.push(text.slice(at, match.index));
    made.push(h("span", { class: `y-${kind}` }, match[0]));
    at = match.index + match[0].length;
  }
  made.push(text.slice(at));
  return made;
}
