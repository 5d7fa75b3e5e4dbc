// The daemon's HTTP API, as this page uses it: JSON both ways, errors as one class, nothing sent twice.

/** An answer that says no, or no answer at all (`code` is OFFLINE). */
export class ApiError extends Error {
  /** @param {number} status @param {string} code @param {string} message @param {Record<string, any>} details */
  constructor(status, code, message, details = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.details = details;
  }

  /** Whether nobody knows if it was done: the same request, under the same key, may be sent again. */
  get unsure() {
    return this.code === "OFFLINE" || (this.status >= 502 && !REFUSED.includes(this.code)) || this.code === "BUSY" || this.code === "NOT_READY";
  }
}

/** Refusals of an agent elsewhere: nothing was done, and a person is told so. */
const REFUSED = ["REMOTE_REFUSED", "CARD_CHANGED", "CARD_INVALID"];

/** Under which path the page is: "", or the one that a proxy has it under. */
export const ROOT = new URL("../../..", import.meta.url).pathname.slice(0, -1);

/** How many requests that change something are under way. */
let posts = 0;
export const posting = () => posts > 0;

const PATIENCE_MS = 20_000;
/** An answer is told when the program took it, which takes up to five seconds and more. */
const ACT_PATIENCE_MS = 60_000;

/**
 * @param {string} method @param {string} path
 * @param {{body?: any, key?: string, patience?: number}} options
 * @returns {Promise<any>}
 */
async function request(method, path, { body, key, patience = PATIENCE_MS } = {}) {
  /** @type {Record<string, string>} */
  const headers = { Accept: "application/json" };
  if (method !== "GET") headers["Synapsed-Page"] = "1";
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (key) headers["Idempotency-Key"] = key;
  let answer;
  try {
    answer = await fetch(ROOT + path, {
      method,
      headers,
      body: body === undefined ? null : JSON.stringify(body),
      cache: "no-store",
      credentials: "same-origin",
      redirect: "error",
      signal: AbortSignal.timeout(patience),
    });
  } catch {
    throw new ApiError(0, "OFFLINE", "The daemon cannot be reached.");
  }
  let told = null;
  try {
    told = await answer.json();
  } catch {
    if (answer.ok) throw new ApiError(0, "OFFLINE", "The answer was cut off.");
  }
  if (!answer.ok) {
    const error = told && typeof told === "object" && told.error ? told.error : {};
    const message = typeof error.message === "string" ? error.message : `The daemon answered ${answer.status}.`;
    throw new ApiError(answer.status, String(error.code ?? "HTTP"), message, error.details ?? {});
  }
  const next = /<([^>]+)>; *rel="next"/.exec(answer.headers.get("Link") ?? "")?.[1];
  if (next) following.set(told, next.startsWith(`${ROOT}/`) ? next.slice(ROOT.length) : next);
  return told;
}

/** Where a list goes on that was answered in part. @type {WeakMap<object, string>} */
const following = new WeakMap();
/** @param {object} list @returns {string} "" where there is no more */
export const nextOf = (list) => following.get(list) ?? "";

/** @param {string} path */
export const get = (path) => request("GET", path);
/** @param {string} path @param {any} body @param {string} [key] */
export async function post(path, body = {}, key = "") {
  posts += 1;
  try {
    return await request("POST", path, { body, key, patience: ACT_PATIENCE_MS });
  } finally {
    posts -= 1;
  }
}
/** @param {string} path */
export const remove = (path) => request("DELETE", path);

/** @param {string} agent */
export const agentPath = (agent) => `/agents/${encodeURIComponent(agent)}`;

/** @param {string} path */
export function socketUrl(path) {
  const url = new URL(ROOT + path, location.href);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  return url.href;
}

/** Milliseconds until a line is tried again that has failed so often: not all of them at once. @param {number} failures */
export const pauseAfter = (failures) => Math.min(15_000, 500 * 2 ** failures) * (0.5 + Math.random() / 2);

/** A name for one act, so that it is done once however often it is sent. */
export function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(18));
  return `page-${btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_")}`;
}
