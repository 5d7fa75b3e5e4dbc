// Events that are over.

import { ApiError, ROOT } from "./api.js";

const PATIENCE_MS = 20_000;

/**
 * The events of a stream that ends by itself (`until=newest`).
 * @param {string} path
 * @returns {Promise<any[]>}
 */
export async function past(path) {
  let text;
  try {
    const answer = await fetch(ROOT + path, { headers: { Accept: "text/event-stream" }, cache: "no-store", signal: AbortSignal.timeout(PATIENCE_MS) });
    if (answer.status === 204) return [];
    if (!answer.ok) throw new ApiError(answer.status, "HTTP", `The daemon answered ${answer.status}.`);
    text = await answer.text();
  } catch (error) {
    if (error instanceof ApiError) throw error;
    throw new ApiError(0, "OFFLINE", "The daemon cannot be reached.");
  }
  const events = [];
  for (const line of text.split("\n")) {
    if (!line.startsWith("data:")) continue;
    const event = JSON.parse(line.slice(5));
    if (event.event === "batchEvents") events.push(...event.data);
    else if (event.id) events.push(event);
  }
  return events;
}
