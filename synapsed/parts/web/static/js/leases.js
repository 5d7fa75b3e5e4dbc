// Keys on their way over a line that may be dead (docs/http-api.md, "Keys under a lease"): what comes late is not typed, and
// is sent once more while somebody is still there. As synapsectl/leases.py has it.

/** Milliseconds without a word after which nothing more is sent, and the person is told. */
const SILENT_MS = 3000;
/** So long keys wait for the line. */
const KEPT_MS = 20_000;
const HEAD = 8;

/** @typedef {{number: number, typed: number, keys: Uint8Array}} Sent */

export class LeasedKeys {
  constructor() {
    this.lease = /** @type {number|null} */ (null);
    this.heard = Date.now();
    this.number = 0;
    this.lateness = 0;
    this.sent = /** @type {Sent[]} */ ([]);
    this.queue = /** @type {{typed: number, keys: Uint8Array}[]} */ ([]);
  }

  /** Of another connection: what was not sent there is sent here. */
  again() {
    const next = new LeasedKeys();
    next.queue = this.queue;
    return next;
  }

  /** @param {Uint8Array} keys */
  type(keys) {
    this.queue.push({ typed: Date.now(), keys });
  }

  /** @param {number} lease @param {number} taken */
  took(lease, taken) {
    this.lease = lease;
    this.heard = Date.now();
    this.sent = this.sent.filter((one) => one.number > taken);
  }

  /** What came late goes first. @param {number} lateness @param {number} taken */
  late(lateness, taken) {
    this.lateness = lateness;
    this.queue = [...this.sent.filter((one) => one.number > taken), ...this.queue];
    this.sent = [];
  }

  get silent() {
    return Math.abs(Date.now() - this.heard) > SILENT_MS;
  }

  /** The next piece, where one may be sent. @returns {Uint8Array<ArrayBuffer>|null} */
  piece() {
    const next = this.queue[0];
    if (!next || this.lease === null || this.silent) return null;
    this.queue.shift();
    this.number += 1;
    this.sent.push({ ...next, number: this.number });
    const piece = new Uint8Array(HEAD + next.keys.length);
    const view = new DataView(piece.buffer);
    view.setUint32(0, this.lease);
    view.setUint32(4, this.number);
    piece.set(next.keys, HEAD);
    return piece;
  }

  /** Whether the oldest key has waited for too long. */
  get old() {
    const oldest = this.sent[0] ?? this.queue[0];
    return oldest !== undefined && Math.abs(Date.now() - oldest.typed) > KEPT_MS;
  }

  /** Nothing of it is typed any more; how many bytes that are. */
  drop() {
    const lost = [...this.sent, ...this.queue].reduce((sum, one) => sum + one.keys.length, 0);
    this.sent = [];
    this.queue = [];
    return lost;
  }
}
