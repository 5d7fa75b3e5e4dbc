// The events of synapsed, as GET /events and GET /agents/{agent}/events send them (docs/events.md).
// Made from synapsed/model/events by `python -m scripts.events`.
// There may be others in future: pass over those that you do not know, and their fields.

/** Activity of a running agent. */
export type Activity = "starting" | "ready" | "busy" | "waiting" | "limited" | "unknown";

/** An agent's activity changed; `evidence` names the channel and its report. */
export interface ActivityChanged {
  activity: Activity;
  evidence: string;
  prompt: Prompt | null | Truncated;
  /** How much it runs in its background; null: not reported with this */
  background: number | null;
}

export interface ActivityChangedEvent {
  id: number;
  event: "activity";
  data: ActivityChanged;
  time: string;
  agent: string | null;
  task: string | null;
  context: string | null;
}

/** A problem that a person should know of: a gap in the spool, a full disk, a lost keeper. */
export interface AgentAlert {
  code: string;
  message: string;
  details: { [key: string]: unknown } | Truncated;
}

export interface AgentAlertEvent {
  id: number;
  event: "agentAlert";
  data: AgentAlert;
  time: string;
  agent: string | null;
  task: string | null;
  context: string | null;
}

/** Report from an agent for the person who watches it. */
export interface AgentReported {
  kind: string;
  message: string | Truncated;
  /** Who reported it from outside: `person`, or an agent's id; null: synapsed saw it itself */
  reported_by: string | null;
}

export interface AgentReportedEvent {
  id: number;
  event: "agentReported";
  data: AgentReported;
  time: string;
  agent: string | null;
  task: string | null;
  context: string | null;
}

/** Work passed from one agent to another. */
export interface AgentTransition {
  /** Who had it; null: a person */
  from_agent: string | null;
  /** Who has it now */
  to_agent: string;
  reason: string | null;
  /** What carried it: a message, the reply to one, or a message to or from another machine */
  kind: "message" | "reply" | "external" | null;
  /** The sender's own task that this is part of */
  from_task: string | null;
  /** Who reported it from outside: `person`, or an agent's id; null: synapsed saw it itself */
  reported_by: string | null;
}

export interface AgentTransitionEvent {
  id: number;
  event: "agentTransition";
  data: AgentTransition;
  time: string;
  agent: string | null;
  task: string | null;
  context: string | null;
}

/** A piece of an answer. `type` is `text`, `code`, `file` or `data` (S2). */
export interface Artifact {
  artifact_id: string;
  type?: string;
  name?: string;
  parts: Array<TextPart | FilePart | DataPart>;
  metadata?: { [key: string]: unknown } | null;
}

/** A person is needed, or no longer; the inbox is made of these. `opened` comes once for each `id`, then once `answered` or `gone` (it was withdrawn, or it is not known who handled it). */
export interface AttentionChanged {
  id: string;
  state: "opened" | "answered" | "gone";
  /** permission, question, plan, sign_in, limit, account, failure, crash_loop, unreadable, finished or alert */
  kind: string;
  /** Its beginning, or what is the matter */
  question: string;
  prompt_id: string | null;
  /** The alert's */
  code: string | null;
  /** When a limit ends, or is tried out (RFC 3339, UTC) */
  until: string | null;
  by: By | null;
  who: string | null;
  where: Where | null;
}

export interface AttentionChangedEvent {
  id: number;
  event: "attention";
  data: AttentionChanged;
  time: string;
  agent: string | null;
  task: string | null;
  context: string | null;
}

export interface BatchEvents {
  id: number;
  event: "batchEvents";
  data: Array<SingleEvent>;
  time: string;
  agent: string | null;
  task: string | null;
  context: string | null;
}

export type By = "person" | "agent" | "policy" | "rule" | "daemon";

/** The daemon has started, or is about to end. */
export interface DaemonChanged {
  state: "started" | "stopping";
  version: string;
  pid: number;
  /** How many there are */
  agents: number;
}

export interface DaemonChangedEvent {
  id: number;
  event: "daemon";
  data: DaemonChanged;
  time: string;
  agent: string | null;
  task: string | null;
  context: string | null;
}

export interface DataPart {
  type: "data";
  data: unknown;
  metadata?: { [key: string]: unknown } | null;
}

/** All changes that a turn has made in files so far; it replaces the event before it of the same turn. */
export interface DiffUpdated {
  /** In the unified format */
  diff: string | Truncated;
  /** The end is left out */
  truncated: boolean;
  /** The program's own id of the turn */
  turn_id: string | null;
  /** The channel that reported it */
  source: string | null;
}

export interface DiffUpdatedEvent {
  id: number;
  event: "diff";
  data: DiffUpdated;
  time: string;
  agent: string | null;
  task: string | null;
  context: string | null;
}

/** Estimated feeling of the person who works with an agent. */
export interface EmotionUpdate {
  emotion_type: "frustration" | "confidence" | "fatigue" | "joy";
  level: number;
  detected_from: "voice_tone" | "text_analysis" | "interaction_pattern";
  /** What was seen, in words; never what the person wrote */
  evidence: string | null;
  /** Who reported it from outside: `person`, or an agent's id; null: synapsed saw it itself */
  reported_by: string | null;
}

export interface EmotionUpdateEvent {
  id: number;
  event: "emotionUpdate";
  data: EmotionUpdate;
  time: string;
  agent: string | null;
  task: string | null;
  context: string | null;
}

/** A file by value (`bytes`, base64) or by reference (`uri`). */
export interface FileContent {
  name?: string | null;
  mimeType?: string | null;
  bytes?: string | null;
  uri?: string | null;
}

export interface FilePart {
  type: "file";
  file: FileContent;
  metadata?: { [key: string]: unknown } | null;
}

/** Events were skipped: not all of those from id `from` to `to` are kept. A gap is not in the log, and has no id. */
export interface Gap {
  from: number;
  to: number;
}

export interface GapEvent {
  id: null;
  event: "gap";
  data: Gap;
  time: string;
  agent: string | null;
  task: string | null;
  context: string | null;
}

/** The program took an answer. An answer to a password prompt is not included. */
export interface InputAnswered {
  prompt_id: string;
  /** null where it is secret, or was typed at the terminal */
  answer: string | null | Truncated;
  /** Who answered; null: not known */
  by: By | null;
  /** The agent's id, or the name of the rule or policy's rule */
  who: string | null;
  /** From where it was answered */
  where: Where | null;
}

export interface InputAnsweredEvent {
  id: number;
  event: "inputAnswered";
  data: InputAnswered;
  time: string;
  agent: string | null;
  task: string | null;
  context: string | null;
}

/** A program asks, and a person has to answer: in a task, or outside of tasks. */
export interface InputRequired {
  prompt: Prompt | Truncated;
}

export interface InputRequiredEvent {
  id: number;
  event: "inputRequired";
  data: InputRequired;
  time: string;
  agent: string | null;
  task: string | null;
  context: string | null;
}

/** An agent's approval policy was asked about a tool call. `rule` is the rule that decided, null for the default; `input` is what was to be done, with secrets masked. */
export interface PermissionDecided {
  verdict: "allow" | "deny" | "escalate";
  rule: string | null;
  tool: string;
  input: { [key: string]: unknown } | Truncated;
}

export interface PermissionDecidedEvent {
  id: number;
  event: "permissionDecided";
  data: PermissionDecided;
  time: string;
  agent: string | null;
  task: string | null;
  context: string | null;
}

/** One step of a plan. */
export interface PlanStep {
  text: string;
  status?: "pending" | "in_progress" | "completed";
}

/** The whole current plan of a program; it replaces the plan before it. */
export interface PlanUpdated {
  steps: Array<PlanStep> | Truncated;
  /** What the program says of the change */
  note: string | null;
  /** The program's own id of the turn */
  turn_id: string | null;
  /** The channel that reported it */
  source: string | null;
}

export interface PlanUpdatedEvent {
  id: number;
  event: "plan";
  data: PlanUpdated;
  time: string;
  agent: string | null;
  task: string | null;
  context: string | null;
}

/** State of an agent's process (docs/architecture.md); the transitions are in `agents/lifecycle.py`. */
export type ProcessState = "stopped" | "starting" | "running" | "stopping" | "parked" | "exited" | "backoff" | "failed";

/** Question of a program to a person (S4). */
export interface Prompt {
  prompt_id: string;
  type: "confirmation" | "selection" | "text" | "password" | "permission" | "question" | "trust" | "login" | "screen";
  prompt: string;
  options?: Array<PromptOption>;
  default?: string | null;
  own_words?: boolean;
  command?: string | null;
  diff?: string | null;
}

/** One way to answer a prompt: `key` is the value for `input` (and the key to press), `label` its text. */
export interface PromptOption {
  key: string;
  label: string;
}

/** The used share of its account's limits, as a program reports it; sent when it has changed. */
export interface RateLimitsSeen {
  windows: Array<RateWindow>;
  /** The account's plan, as its program calls it */
  plan: string | null;
  /** The channel that reported it */
  source: string | null;
}

export interface RateLimitsSeenEvent {
  id: number;
  event: "rateLimits";
  data: RateLimitsSeen;
  time: string;
  agent: string | null;
  task: string | null;
  context: string | null;
}

/** One limit of an account over a stretch of time. */
export interface RateWindow {
  name: string;
  used_percent: number;
  /** How long the stretch is */
  minutes?: number | null;
  /** RFC 3339, UTC */
  resets_at?: string | null;
}

/** A rule matched an event, which is `cause`. `done`: its action was taken (a webhook: is about to be called); `failed`: `problem` says why not; `held`: nothing was done, to prevent a loop. */
export interface RuleFired {
  rule: string;
  /** Id of the event */
  cause: number;
  /** Its type */
  cause_event: string;
  action: "notify" | "approve" | "deny" | "send" | "restart" | "webhook";
  outcome: "done" | "failed" | "held";
  /** The task that was sent */
  sent: string | null;
  /** The receiver that is notified */
  webhook: string | null;
  /** The text for the person */
  text: string;
  problem: string;
}

export interface RuleFiredEvent {
  id: number;
  event: "ruleFired";
  data: RuleFired;
  time: string;
  agent: string | null;
  task: string | null;
  context: string | null;
}

/** A scheduled time came. `sent`: its message is the task; `missed`: no daemon ran, or the machine slept, and nothing is sent; `refused`: it could not be sent, and `problem` says why. */
export interface ScheduleCame {
  /** Its id */
  schedule: string;
  outcome: "sent" | "missed" | "refused";
  /** The time of the schedule (RFC 3339, UTC) */
  at: string;
  /** The first time that was missed, where any was */
  missed_since: string | null;
  problem: string;
}

export interface ScheduleCameEvent {
  id: number;
  event: "schedule";
  data: ScheduleCame;
  time: string;
  agent: string | null;
  task: string | null;
  context: string | null;
}

/** An agent's screen came to rest, and shows something else than the last time. */
export interface ScreenRested {
  /** Of its text: the same text has the same */
  digest: string;
}

export interface ScreenRestedEvent {
  id: number;
  event: "screen";
  data: ScreenRested;
  time: string;
  agent: string | null;
  task: string | null;
  context: string | null;
}

export type SingleEvent = TaskStatusChangedEvent | TaskArtifactAddedEvent | TaskDeliveredEvent | StateChangedEvent | ActivityChangedEvent | InputRequiredEvent | InputAnsweredEvent | AttentionChangedEvent | PermissionDecidedEvent | AgentAlertEvent | AgentReportedEvent | TurnSeenEvent | TokensUsedEvent | PlanUpdatedEvent | DiffUpdatedEvent | RateLimitsSeenEvent | ScreenRestedEvent | DaemonChangedEvent | RuleFiredEvent | ScheduleCameEvent | ToolExecutionEvent | AgentTransitionEvent | EmotionUpdateEvent | GapEvent;

/** An agent's process went into `state`. `exit_code` is negative for a signal, as in subprocess. */
export interface StateChanged {
  state: ProcessState | "removed";
  reason: string;
  pid: number | null;
  exit_code: number | null;
  restarts: number;
}

export interface StateChangedEvent {
  id: number;
  event: "agentState";
  data: StateChanged;
  time: string;
  agent: string | null;
  task: string | null;
  context: string | null;
}

/** Output of a task. With `append` false the artifact replaces the former content under its `artifact_id`. */
export interface TaskArtifactAdded {
  artifact: Artifact | Truncated;
  append: boolean;
  last_chunk: boolean;
}

export interface TaskArtifactAddedEvent {
  id: number;
  event: "taskArtifact";
  data: TaskArtifactAdded;
  time: string;
  agent: string | null;
  task: string | null;
  context: string | null;
}

/** The task's message is typed at the agent's terminal, and submitted: the turn begins. Once for each attempt. */
export interface TaskDelivered {
  /** The same task may be typed again where its program ended before */
  attempt: number;
}

export interface TaskDeliveredEvent {
  id: number;
  event: "taskDelivered";
  data: TaskDelivered;
  time: string;
  agent: string | null;
  task: string | null;
  context: string | null;
}

/** Reason why a task did not complete; docs/http-api.md has the codes. */
export interface TaskError {
  code: string;
  message: string;
  details?: { [key: string]: unknown };
}

/** State of a task; the words are those of the wire. */
export type TaskState = "submitted" | "working" | "input_required" | "auth_required" | "completed" | "failed" | "canceled" | "rejected";

/** A task went into `state`; the first of a task is `submitted`. */
export interface TaskStatusChanged {
  state: TaskState;
  reason: string | null;
  error: TaskError | null | Truncated;
  prompt: Prompt | null | Truncated;
}

export interface TaskStatusChangedEvent {
  id: number;
  event: "taskStatus";
  data: TaskStatusChanged;
  time: string;
  agent: string | null;
  task: string | null;
  context: string | null;
}

export interface TextPart {
  type: "text";
  text: string;
  metadata?: { [key: string]: unknown } | null;
}

/** Tokens that a turn has used, if the program reports them. It is never a running total, so that a sum is right. */
export interface TokensUsed {
  model: string | null;
  /** Without those read from or written to a cache */
  input_tokens: number | null;
  output_tokens: number | null;
  cache_read_tokens: number | null;
  cache_write_tokens: number | null;
  cost_usd: number | null;
  /** The program's own id of it */
  turn_id: string | null;
  /** The channel that reported it */
  source: string | null;
}

export interface TokensUsedEvent {
  id: number;
  event: "usage";
  data: TokensUsed;
  time: string;
  agent: string | null;
  task: string | null;
  context: string | null;
}

/** A program began a tool call, or the call ended. */
export interface ToolExecution {
  /** The tool, as its program calls it */
  tool_name: string;
  status: "started" | "completed" | "failed";
  /** What the tool was given, secrets masked */
  input: { [key: string]: unknown } | null | Truncated;
  /** What it gave back; a text is `{text: …}` */
  output: { [key: string]: unknown } | null | Truncated;
  /** Why it failed; for a denied one, the reason of the denial */
  error: string | null | Truncated;
  /** The same of a call's start and its end */
  call_id: string | null;
  /** From start to end, where both were seen */
  duration_ms: number | null;
  /** It failed because it was not allowed */
  denied: boolean;
  /** False: read off the screen */
  exact: boolean;
  /** The channel that reported it, such as `hooks`, `server`, `screen` */
  source: string | null;
  /** Who reported it from outside: `person`, or an agent's id; null: synapsed saw it itself */
  reported_by: string | null;
}

export interface ToolExecutionEvent {
  id: number;
  event: "toolExecution";
  data: ToolExecution;
  time: string;
  agent: string | null;
  task: string | null;
  context: string | null;
}

/** Placeholder for a field that makes its event too large for a stream: `GET /events/{id}` has it whole. */
export interface Truncated {
  truncated?: true;
  /** Characters of what it stands for, as JSON */
  size: number;
}

/** A turn that a person typed at the agent's terminal, if a side channel reports it. */
export interface TurnSeen {
  text: string | Truncated;
  answer: string | null | Truncated;
  /** The program's own id of it */
  turn_id: string | null;
  /** The channel that reported it */
  source: string | null;
}

export interface TurnSeenEvent {
  id: number;
  event: "turnSeen";
  data: TurnSeen;
  time: string;
  agent: string | null;
  task: string | null;
  context: string | null;
}

export type Where = "terminal" | "control" | "http" | "a2a";

export type SynapsedEvent = SingleEvent | BatchEvents;
