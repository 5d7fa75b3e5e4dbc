// A client of the stream of events, as somebody writes it who has only the types.
import type { BatchEvents, SingleEvent, SynapsedEvent, Truncated } from "./events";

declare const process: { argv: string[] };

function single(message: SynapsedEvent): SingleEvent[] {
  return message.event === "batchEvents" ? (message as BatchEvents).data : [message];
}

function cut(value: unknown): value is Truncated {
  return typeof value === "object" && value !== null && (value as Truncated).truncated === true;
}

function told(event: SingleEvent): string {
  switch (event.event) {
    case "toolExecution": {
      const { tool_name, status, output, duration_ms } = event.data;
      const size: number = cut(output) ? output.size : Object.keys(output ?? {}).length;
      return `${tool_name} ${status satisfies "started" | "completed" | "failed"} ${size} ${duration_ms ?? 0}`;
    }
    case "emotionUpdate":
      return `${event.data.emotion_type} ${event.data.level.toFixed(0)} ${event.data.detected_from}`;
    case "agentTransition":
      return `${event.data.from_agent ?? "a person"} -> ${event.data.to_agent}`;
    case "inputRequired":
      return cut(event.data.prompt) ? "?" : (event.data.prompt.options ?? []).map((one) => one.key).join();
    case "gap":
      return `${event.id} ${event.data.from}-${event.data.to}`;
    default:
      return ""; // there may be others
  }
}

const cursor: { last: number | null } = { last: null };
for (const line of process.argv.slice(2)) {
  const message: SynapsedEvent = JSON.parse(line);
  for (const event of single(message)) console.log(told(event));
  cursor.last = message.id ?? cursor.last;
}
console.log(String(cursor.last));
