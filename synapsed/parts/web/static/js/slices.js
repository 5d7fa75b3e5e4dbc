// Work that is much: a slice of it at a time, between which the page answers to everything else.

/** About a frame: what a slice has changed is laid out and painted before the next one. */
const PAUSE_MS = 16;
/** When this much has been done, the rest is for the next slice. */
const SLICE_MS = 8;

/** @type {(() => void)[]} */
const waiting = [];
let timer = 0;

/** One of many such jobs, each in its turn; what is returned takes it back. @param {() => void} job @returns {() => void} */
export function slice(job) {
  waiting.push(job);
  timer ||= setTimeout(work, PAUSE_MS);
  return () => {
    const place = waiting.indexOf(job);
    if (place >= 0) waiting.splice(place, 1);
  };
}

async function work() {
  const end = performance.now() + SLICE_MS;
  try {
    do {
      waiting.shift()?.();
      await null; // what the job has changed is drawn first, which may make another
    } while (waiting.length && performance.now() < end);
  } finally {
    timer = waiting.length ? setTimeout(work, PAUSE_MS) : 0;
  }
}
