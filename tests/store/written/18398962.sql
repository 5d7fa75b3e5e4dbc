BEGIN TRANSACTION;
CREATE TABLE agents (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  data TEXT NOT NULL              -- JSON of AgentRecord
);
INSERT INTO "agents" VALUES(1,'synapse-claude-8100','{"id":"synapse-claude-8100","name":"synapse-claude-8100","profile":"claude","port":8100,"cwd":"/tmp/try","args":[],"env":{"A":"é"},"extra_env":{},"desired":"running","state":"running","from_config":false,"accept_agents":false,"resume_at_reset":false,"restart_pending":false,"parking":false,"cols":120,"rows":40,"restarts":0,"created_at":1.0,"changed_at":0.0,"conversation":"c1","said":true,"context_id":"ctx","conversation_note":null,"told":null,"launch":{"launch_id":"l1","socket":"/tmp/try/k.sock","keeper_pid":4,"keeper_start":5,"pid":6,"pid_start":7,"spool_start":0,"started_at":3.0,"resumed":false,"version":"2.1.0"},"limit":null,"failure":null}');
INSERT INTO "agents" VALUES(2,'synapse-codex-8120','{"id":"synapse-codex-8120","name":"box","profile":"codex","port":8120,"cwd":"/","args":[],"env":{"A":"é"},"extra_env":{},"desired":"stopped","state":"stopped","from_config":false,"accept_agents":false,"resume_at_reset":false,"restart_pending":false,"parking":false,"cols":120,"rows":40,"restarts":0,"created_at":1.0,"changed_at":0.0,"conversation":null,"said":false,"context_id":null,"conversation_note":null,"told":null,"launch":null,"limit":{"since":1.0,"until":2.0,"resume_at":2.0,"attempt":1,"words":"limit reached","lifted":false,"attention":"a1"},"failure":null}');
CREATE TABLE checkpoints (
  agent_id TEXT PRIMARY KEY REFERENCES agents (id) ON DELETE CASCADE,
  data TEXT NOT NULL,             -- JSON of Checkpoint without `redraw`
  redraw BLOB NOT NULL
);
INSERT INTO "checkpoints" VALUES('synapse-claude-8100','{"offset":3,"cols":80,"rows":24,"state":{"x":1}}',X'007365616C656431AB9CB29CC057E612D557E94A1E896977D34C1EF4B8462A9B8F50F1E8AA6CC6FCB9');
CREATE TABLE events (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  at REAL NOT NULL,               -- seconds since the epoch
  agent_id TEXT NOT NULL,
  task_id TEXT,
  type TEXT NOT NULL,
  data TEXT NOT NULL              -- JSON of EventData
, context_id TEXT);
INSERT INTO "events" VALUES(1,1700000000.0,'synapse-claude-8100',NULL,'agentState','{"type":"agentState","state":"running","reason":"","pid":null,"exit_code":null,"restarts":0}',NULL);
INSERT INTO "events" VALUES(2,1700000000.0,'synapse-claude-8100','task-done','taskStatus','{"type":"taskStatus","state":"completed","reason":null,"error":null,"prompt":null}','17290774-a1d1-4fec-a057-b9046b95d220');
INSERT INTO "events" VALUES(3,1700000000.0,'synapse-claude-8100','task-failed','taskStatus','{"type":"taskStatus","state":"failed","reason":null,"error":null,"prompt":null}','3e5ac34e-b529-4868-877e-6d3e298e7380');
INSERT INTO "events" VALUES(4,1700000000.0,'synapse-claude-8100','task-working','taskStatus','{"type":"taskStatus","state":"working","reason":null,"error":null,"prompt":null}','7d96ffbf-1cc2-4bbc-9c2c-5ee358e26fb3');
INSERT INTO "events" VALUES(5,1700000000.0,'synapse-codex-8120','task-asks','taskStatus','{"type":"taskStatus","state":"input_required","reason":null,"error":null,"prompt":null}','ea42ca94-04de-4cf2-a3b4-6707d3d45908');
INSERT INTO "events" VALUES(6,1700000000.0,'synapse-claude-8100','task-waits','taskStatus','{"type":"taskStatus","state":"submitted","reason":null,"error":null,"prompt":null}','83a93651-a70d-4792-a45e-05597a924de5');
INSERT INTO "events" VALUES(7,1700000000.0,'synapse-codex-8120',NULL,'attention','{"type":"attention","id":"a1","state":"opened","kind":"limit","question":"limit reached","prompt_id":null,"code":null,"until":null,"by":null,"who":null,"where":null}',NULL);
INSERT INTO "events" VALUES(8,1700000000.0,'synapse-claude-8100',NULL,'agentReported','{"type":"agentReported","kind":"note","message":"hello","reported_by":null}',NULL);
INSERT INTO "events" VALUES(9,1700000000.0,'',NULL,'daemon','{"type":"daemon","state":"started","version":"0.1.0","pid":1,"agents":2}',NULL);
INSERT INTO "events" VALUES(10,1700000000.0,'synapse-claude-8100',NULL,'activity','{"type":"activity","activity":"busy","evidence":"screen","prompt":null}',NULL);
CREATE TABLE fleet_in (
  seq_no INTEGER PRIMARY KEY AUTOINCREMENT,
  src TEXT NOT NULL,
  id TEXT NOT NULL,
  kind TEXT NOT NULL,
  n INTEGER NOT NULL DEFAULT 0,   -- of the last update: that came, or that was made of the task
  task_id TEXT,
  refused TEXT,                   -- JSON: code and message
  receipted INTEGER NOT NULL,
  UNIQUE (src, id)
);
CREATE TABLE fleet_out (
  seq_no INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  dst TEXT NOT NULL,              -- a host, or `any:CLASS`
  kind TEXT NOT NULL,             -- msg, upd, ctl, work
  task_id TEXT NOT NULL,
  n INTEGER NOT NULL DEFAULT 0,
  body TEXT,                      -- JSON, of a ctl
  state TEXT NOT NULL,            -- new, piped
  stream TEXT,                    -- when the broker's stream was made that has it
  seq INTEGER,                    -- and where it stands there
  attempt INTEGER NOT NULL DEFAULT 0,
  at REAL NOT NULL DEFAULT ((julianday('now') - 2440587.5) * 86400.0) -- seconds since the epoch
);
CREATE TABLE fleet_peer (host TEXT PRIMARY KEY, jwt TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO "fleet_peer" VALUES('desk','jwt');
CREATE TABLE fleet_pub (name TEXT PRIMARY KEY, cursor INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO "fleet_pub" VALUES('events',7);
CREATE TABLE fleet_quarantine (
  seq_no INTEGER PRIMARY KEY AUTOINCREMENT,
  at REAL NOT NULL,
  subject TEXT NOT NULL,
  reason TEXT NOT NULL,
  headers TEXT NOT NULL,
  size INTEGER NOT NULL
);
CREATE TABLE fleet_work (
  src TEXT NOT NULL,
  id TEXT NOT NULL,
  class TEXT NOT NULL,
  round INTEGER NOT NULL,
  body TEXT NOT NULL,             -- JSON
  PRIMARY KEY (src, id)
) WITHOUT ROWID;
CREATE TABLE followers (
  name TEXT PRIMARY KEY,
  data TEXT NOT NULL              -- JSON of FollowerState: how far rules and webhooks have come in the log
) WITHOUT ROWID;
INSERT INTO "followers" VALUES('moods','{"cursor":3,"partly":[],"state":"active","attempt":0,"failing_since":null,"retry_at":null,"problem":"","secret":""}');
INSERT INTO "followers" VALUES('rules','{"cursor":3,"partly":[],"state":"active","attempt":0,"failing_since":null,"retry_at":null,"problem":"","secret":""}');
INSERT INTO "followers" VALUES('webhook:ci','{"cursor":3,"partly":[],"state":"active","attempt":0,"failing_since":null,"retry_at":null,"problem":"","secret":""}');
CREATE TABLE occurrences (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  schedule TEXT NOT NULL,
  at TEXT NOT NULL,               -- RFC 3339 in UTC
  task_id TEXT NOT NULL,
  told INTEGER NOT NULL DEFAULT 0, -- 1 once the log has its event
  UNIQUE (schedule, at)
);
INSERT INTO "occurrences" VALUES(1,'file:daily','2023-11-14T22:13:20.000Z','task-waits',0);
CREATE TABLE open_attention (
  agent_id TEXT NOT NULL,
  id TEXT NOT NULL,
  event INTEGER NOT NULL,         -- the one that opened it
  PRIMARY KEY (agent_id, id)
) WITHOUT ROWID;
INSERT INTO "open_attention" VALUES('synapse-codex-8120','a1',7);
CREATE TABLE pushes (
  seq INTEGER PRIMARY KEY,        -- order of creation
  task_id TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
  id TEXT NOT NULL,
  active INTEGER NOT NULL,        -- 0 once there is nothing more to tell
  data TEXT NOT NULL,             -- JSON of PushRecord, credentials included
  UNIQUE (task_id, id)
);
INSERT INTO "pushes" VALUES(1,'task-working','p',1,'{"task_id":"task-working","id":"p","agent_id":"synapse-claude-8100","url":"https://example.com/hook","token":"⟦sealed:eMwyDul0o3x3kSMSBWqqsMiVAPvbMgCCE7GCtcc03fjC⟧","scheme":null,"credentials":null,"dialect":"1.0","state":"active","cursor":1,"attempt":0,"failing_since":null,"retry_at":null}');
CREATE TABLE removed (
  agent_id TEXT PRIMARY KEY,
  upto INTEGER NOT NULL           -- id of the agent's newest event that was removed
) WITHOUT ROWID;
CREATE TABLE replies (
  task_id TEXT PRIMARY KEY REFERENCES tasks (id) ON DELETE CASCADE,
  data TEXT NOT NULL              -- JSON of ReplyRecord
);
INSERT INTO "replies" VALUES('task-request','{"task_id":"task-request","asker":"synapse-codex-8120","state":"asked","asked":"task-working","request":null,"wait":false,"limit":60.0,"due":9.0,"hops":0}');
CREATE TABLE schedules (
  id TEXT PRIMARY KEY,
  data TEXT,                      -- JSON of Schedule; null for one of the configuration
  state TEXT NOT NULL             -- JSON of ScheduleState
) WITHOUT ROWID;
INSERT INTO "schedules" VALUES('file:daily',NULL,'{"cursor":1.0,"times":"t","last_at":1,"last_outcome":"sent","last_task":"task-waits","last_problem":""}');
INSERT INTO "schedules" VALUES('weekly','{"name":"weekly","at":"Mon 09:00","zone":null,"agent":"box","message":"look","missed":"skip","priority":1,"new_conversation":false,"id":"weekly","by":null,"created_at":1.0}','{"cursor":2.0,"times":"u","last_at":null,"last_outcome":null,"last_task":null,"last_problem":""}');
CREATE TABLE tasks (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,  -- order of arrival
  id TEXT NOT NULL UNIQUE,
  agent_id TEXT NOT NULL,
  context_id TEXT NOT NULL,
  status TEXT NOT NULL,
  open INTEGER NOT NULL,          -- 0 once the status is terminal
  updated_at TEXT NOT NULL,       -- RFC 3339 in UTC, milliseconds: sorts as text
  data TEXT NOT NULL              -- JSON of Task
);
INSERT INTO "tasks" VALUES(1,'task-done','synapse-claude-8100','17290774-a1d1-4fec-a057-b9046b95d220','completed',0,'1970-01-01T00:00:01.000Z','{"id":"task-done","agent_id":"synapse-claude-8100","context_id":"17290774-a1d1-4fec-a057-b9046b95d220","status":"completed","message":{"role":"user","parts":[{"type":"text","text":"do 1","metadata":null}],"message_id":"cc7a9d3c-5603-41d1-b39d-b48aeba56436","metadata":null},"artifacts":[{"artifact_id":"answer","type":"text","name":"output","parts":[{"type":"text","text":"the answer","metadata":null}],"metadata":null},{"artifact_id":"answer.1","type":"code","name":"output","parts":[{"type":"text","text":"x = 1","metadata":null}],"metadata":null}],"metadata":{"from":{"tier":"person"}},"created_at":"1970-01-01T00:00:01.000Z","updated_at":"1970-01-01T00:00:01.000Z","priority":1,"error":null,"exact":null,"truncated":false,"prompt":null,"waits_behind":null,"exchange":[]}');
INSERT INTO "tasks" VALUES(2,'task-failed','synapse-claude-8100','3e5ac34e-b529-4868-877e-6d3e298e7380','failed',0,'1970-01-01T00:00:02.000Z','{"id":"task-failed","agent_id":"synapse-claude-8100","context_id":"3e5ac34e-b529-4868-877e-6d3e298e7380","status":"failed","message":{"role":"user","parts":[{"type":"text","text":"do 2","metadata":null}],"message_id":"12fc3c24-1302-4102-a1c4-8581577633fd","metadata":null},"artifacts":[],"metadata":{},"created_at":"1970-01-01T00:00:02.000Z","updated_at":"1970-01-01T00:00:02.000Z","priority":1,"error":{"code":"AGENT_EXITED","message":"exit 3","details":{}},"exact":null,"truncated":false,"prompt":null,"waits_behind":null,"exchange":[]}');
INSERT INTO "tasks" VALUES(3,'task-working','synapse-claude-8100','7d96ffbf-1cc2-4bbc-9c2c-5ee358e26fb3','working',1,'1970-01-01T00:00:03.000Z','{"id":"task-working","agent_id":"synapse-claude-8100","context_id":"7d96ffbf-1cc2-4bbc-9c2c-5ee358e26fb3","status":"working","message":{"role":"user","parts":[{"type":"text","text":"do 3","metadata":null}],"message_id":"9a33735c-a454-4bfb-a6c1-f7c5638adeb5","metadata":null},"artifacts":[],"metadata":{},"created_at":"1970-01-01T00:00:03.000Z","updated_at":"1970-01-01T00:00:03.000Z","priority":1,"error":null,"exact":null,"truncated":false,"prompt":null,"waits_behind":null,"exchange":[]}');
INSERT INTO "tasks" VALUES(4,'task-asks','synapse-codex-8120','ea42ca94-04de-4cf2-a3b4-6707d3d45908','input_required',1,'1970-01-01T00:00:04.000Z','{"id":"task-asks","agent_id":"synapse-codex-8120","context_id":"ea42ca94-04de-4cf2-a3b4-6707d3d45908","status":"input_required","message":{"role":"user","parts":[{"type":"text","text":"do 4","metadata":null}],"message_id":"d89951e9-f586-4c92-ba55-68c06c2726a8","metadata":null},"artifacts":[],"metadata":{},"created_at":"1970-01-01T00:00:04.000Z","updated_at":"1970-01-01T00:00:04.000Z","priority":1,"error":null,"exact":null,"truncated":false,"prompt":{"prompt_id":"p1","type":"permission","prompt":"Run it?","options":[{"key":"1","label":"Yes"},{"key":"2","label":"No"}],"default":"1","own_words":false},"waits_behind":null,"exchange":[]}');
INSERT INTO "tasks" VALUES(5,'task-waits','synapse-claude-8100','83a93651-a70d-4792-a45e-05597a924de5','submitted',1,'1970-01-01T00:00:05.000Z','{"id":"task-waits","agent_id":"synapse-claude-8100","context_id":"83a93651-a70d-4792-a45e-05597a924de5","status":"submitted","message":{"role":"user","parts":[{"type":"text","text":"do 5","metadata":null}],"message_id":"f54147d6-26af-4dd3-81df-7e07f9e77340","metadata":null},"artifacts":[],"metadata":{"scheduled":{"schedule":"file:daily","at":"2023-11-14T22:13:20.000Z"}},"created_at":"1970-01-01T00:00:05.000Z","updated_at":"1970-01-01T00:00:05.000Z","priority":1,"error":null,"exact":null,"truncated":false,"prompt":null,"waits_behind":null,"exchange":[]}');
INSERT INTO "tasks" VALUES(6,'task-typed-prepared','synapse-claude-8100','ctx','working',1,'1970-01-01T00:00:10.000Z','{"id":"task-typed-prepared","agent_id":"synapse-claude-8100","context_id":"ctx","status":"working","message":{"role":"user","parts":[{"type":"text","text":"do 10","metadata":null}],"message_id":"b3f3ebe5-d553-4b8d-b24d-f9c2c18fdc90","metadata":null},"artifacts":[],"metadata":{},"created_at":"1970-01-01T00:00:10.000Z","updated_at":"1970-01-01T00:00:10.000Z","priority":1,"error":null,"exact":null,"truncated":false,"prompt":null,"waits_behind":null,"exchange":[]}');
INSERT INTO "tasks" VALUES(7,'task-typed-pasting','synapse-claude-8100','ctx','working',1,'1970-01-01T00:00:11.000Z','{"id":"task-typed-pasting","agent_id":"synapse-claude-8100","context_id":"ctx","status":"working","message":{"role":"user","parts":[{"type":"text","text":"do 11","metadata":null}],"message_id":"6e0297b8-74ad-474a-bbb0-38e62460c673","metadata":null},"artifacts":[],"metadata":{},"created_at":"1970-01-01T00:00:11.000Z","updated_at":"1970-01-01T00:00:11.000Z","priority":1,"error":null,"exact":null,"truncated":false,"prompt":null,"waits_behind":null,"exchange":[]}');
INSERT INTO "tasks" VALUES(8,'task-typed-settling','synapse-claude-8100','ctx','working',1,'1970-01-01T00:00:12.000Z','{"id":"task-typed-settling","agent_id":"synapse-claude-8100","context_id":"ctx","status":"working","message":{"role":"user","parts":[{"type":"text","text":"do 12","metadata":null}],"message_id":"a56a65b0-cf3d-4ea8-af67-38f3714d4311","metadata":null},"artifacts":[],"metadata":{},"created_at":"1970-01-01T00:00:12.000Z","updated_at":"1970-01-01T00:00:12.000Z","priority":1,"error":null,"exact":null,"truncated":false,"prompt":null,"waits_behind":null,"exchange":[]}');
INSERT INTO "tasks" VALUES(9,'task-typed-submitting','synapse-claude-8100','ctx','working',1,'1970-01-01T00:00:13.000Z','{"id":"task-typed-submitting","agent_id":"synapse-claude-8100","context_id":"ctx","status":"working","message":{"role":"user","parts":[{"type":"text","text":"do 13","metadata":null}],"message_id":"e464b2a7-5df9-4319-81d2-2e97a9844f61","metadata":null},"artifacts":[],"metadata":{},"created_at":"1970-01-01T00:00:13.000Z","updated_at":"1970-01-01T00:00:13.000Z","priority":1,"error":null,"exact":null,"truncated":false,"prompt":null,"waits_behind":null,"exchange":[]}');
INSERT INTO "tasks" VALUES(10,'task-typed-submitted','synapse-claude-8100','ctx','working',1,'1970-01-01T00:00:14.000Z','{"id":"task-typed-submitted","agent_id":"synapse-claude-8100","context_id":"ctx","status":"working","message":{"role":"user","parts":[{"type":"text","text":"do 14","metadata":null}],"message_id":"7c9b3ca8-6aef-405d-a7a5-20a554c9346a","metadata":null},"artifacts":[],"metadata":{},"created_at":"1970-01-01T00:00:14.000Z","updated_at":"1970-01-01T00:00:14.000Z","priority":1,"error":null,"exact":null,"truncated":false,"prompt":null,"waits_behind":null,"exchange":[]}');
INSERT INTO "tasks" VALUES(11,'task-typed-working','synapse-claude-8100','ctx','working',1,'1970-01-01T00:00:15.000Z','{"id":"task-typed-working","agent_id":"synapse-claude-8100","context_id":"ctx","status":"working","message":{"role":"user","parts":[{"type":"text","text":"do 15","metadata":null}],"message_id":"878851f6-5326-4a86-9e44-8c26053155ab","metadata":null},"artifacts":[],"metadata":{},"created_at":"1970-01-01T00:00:15.000Z","updated_at":"1970-01-01T00:00:15.000Z","priority":1,"error":null,"exact":null,"truncated":false,"prompt":null,"waits_behind":null,"exchange":[]}');
INSERT INTO "tasks" VALUES(12,'task-typed-reading','synapse-claude-8100','ctx','working',1,'1970-01-01T00:00:16.000Z','{"id":"task-typed-reading","agent_id":"synapse-claude-8100","context_id":"ctx","status":"working","message":{"role":"user","parts":[{"type":"text","text":"do 16","metadata":null}],"message_id":"0b7a035e-fe66-4642-874e-bcc7b9037591","metadata":null},"artifacts":[],"metadata":{},"created_at":"1970-01-01T00:00:16.000Z","updated_at":"1970-01-01T00:00:16.000Z","priority":1,"error":null,"exact":null,"truncated":false,"prompt":null,"waits_behind":null,"exchange":[]}');
INSERT INTO "tasks" VALUES(13,'task-typed-over','synapse-claude-8100','ctx','working',1,'1970-01-01T00:00:17.000Z','{"id":"task-typed-over","agent_id":"synapse-claude-8100","context_id":"ctx","status":"working","message":{"role":"user","parts":[{"type":"text","text":"do 17","metadata":null}],"message_id":"c5845159-9958-42a4-be44-59bacfe96217","metadata":null},"artifacts":[],"metadata":{},"created_at":"1970-01-01T00:00:17.000Z","updated_at":"1970-01-01T00:00:17.000Z","priority":1,"error":null,"exact":null,"truncated":false,"prompt":null,"waits_behind":null,"exchange":[]}');
INSERT INTO "tasks" VALUES(14,'task-sent-sending','synapse-claude-8100','ctx','working',1,'1970-01-01T00:00:18.000Z','{"id":"task-sent-sending","agent_id":"synapse-claude-8100","context_id":"ctx","status":"working","message":{"role":"user","parts":[{"type":"text","text":"do 18","metadata":null}],"message_id":"503495bb-14e0-442a-8a22-c3b37e47ebff","metadata":null},"artifacts":[],"metadata":{},"created_at":"1970-01-01T00:00:18.000Z","updated_at":"1970-01-01T00:00:18.000Z","priority":1,"error":null,"exact":null,"truncated":false,"prompt":null,"waits_behind":null,"exchange":[]}');
INSERT INTO "tasks" VALUES(15,'task-sent-working','synapse-claude-8100','ctx','working',1,'1970-01-01T00:00:19.000Z','{"id":"task-sent-working","agent_id":"synapse-claude-8100","context_id":"ctx","status":"working","message":{"role":"user","parts":[{"type":"text","text":"do 19","metadata":null}],"message_id":"490a5793-6d1e-4b24-ad0d-e5f1bec6fbf4","metadata":null},"artifacts":[],"metadata":{},"created_at":"1970-01-01T00:00:19.000Z","updated_at":"1970-01-01T00:00:19.000Z","priority":1,"error":null,"exact":null,"truncated":false,"prompt":null,"waits_behind":null,"exchange":[]}');
INSERT INTO "tasks" VALUES(16,'task-sent-over','synapse-claude-8100','ctx','working',1,'1970-01-01T00:00:20.000Z','{"id":"task-sent-over","agent_id":"synapse-claude-8100","context_id":"ctx","status":"working","message":{"role":"user","parts":[{"type":"text","text":"do 20","metadata":null}],"message_id":"5ee69e38-34f2-4098-a61f-f366f8c29b32","metadata":null},"artifacts":[],"metadata":{},"created_at":"1970-01-01T00:00:20.000Z","updated_at":"1970-01-01T00:00:20.000Z","priority":1,"error":null,"exact":null,"truncated":false,"prompt":null,"waits_behind":null,"exchange":[]}');
INSERT INTO "tasks" VALUES(17,'task-request','synapse-claude-8100','a1f9b082-f79e-44ee-8713-cd50b2cf67e0','submitted',1,'1970-01-01T00:00:06.000Z','{"id":"task-request","agent_id":"synapse-claude-8100","context_id":"a1f9b082-f79e-44ee-8713-cd50b2cf67e0","status":"submitted","message":{"role":"user","parts":[{"type":"text","text":"do 6","metadata":null}],"message_id":"c3b05df2-3abc-4538-8baf-f7d8c4378c28","metadata":null},"artifacts":[],"metadata":{},"created_at":"1970-01-01T00:00:06.000Z","updated_at":"1970-01-01T00:00:06.000Z","priority":1,"error":null,"exact":null,"truncated":false,"prompt":null,"waits_behind":null,"exchange":[]}');
CREATE TABLE turns (
  task_id TEXT PRIMARY KEY REFERENCES tasks (id) ON DELETE CASCADE,
  data TEXT NOT NULL              -- JSON of TurnRecord
);
INSERT INTO "turns" VALUES('task-typed-prepared','{"task_id":"task-typed-prepared","launch_id":"l1","attempt":2,"continued":"x","link":{"phase":"prepared","submitted":false,"submit_ns":5,"submit_offset":6,"busy_seen":true,"resubmitted":true,"refused":false,"interrupting":false,"turn":"t","leg":1,"shown":"> do","marks":[1,2],"located":true,"left":true,"prompt":"> ","typed_from":7,"reader":8,"edited":false,"note":null}}');
INSERT INTO "turns" VALUES('task-typed-pasting','{"task_id":"task-typed-pasting","launch_id":"l1","attempt":2,"continued":"x","link":{"phase":"pasting","submitted":false,"submit_ns":5,"submit_offset":6,"busy_seen":true,"resubmitted":true,"refused":false,"interrupting":false,"turn":"t","leg":1,"shown":"> do","marks":[1,2],"located":true,"left":true,"prompt":"> ","typed_from":7,"reader":8,"edited":false,"note":null}}');
INSERT INTO "turns" VALUES('task-typed-settling','{"task_id":"task-typed-settling","launch_id":"l1","attempt":2,"continued":"x","link":{"phase":"settling","submitted":false,"submit_ns":5,"submit_offset":6,"busy_seen":true,"resubmitted":true,"refused":false,"interrupting":false,"turn":"t","leg":1,"shown":"> do","marks":[1,2],"located":true,"left":true,"prompt":"> ","typed_from":7,"reader":8,"edited":false,"note":null}}');
INSERT INTO "turns" VALUES('task-typed-submitting','{"task_id":"task-typed-submitting","launch_id":"l1","attempt":2,"continued":"x","link":{"phase":"submitting","submitted":true,"submit_ns":5,"submit_offset":6,"busy_seen":true,"resubmitted":true,"refused":false,"interrupting":false,"turn":"t","leg":1,"shown":"> do","marks":[1,2],"located":true,"left":true,"prompt":"> ","typed_from":7,"reader":8,"edited":false,"note":null}}');
INSERT INTO "turns" VALUES('task-typed-submitted','{"task_id":"task-typed-submitted","launch_id":"l1","attempt":2,"continued":"x","link":{"phase":"submitted","submitted":true,"submit_ns":5,"submit_offset":6,"busy_seen":true,"resubmitted":true,"refused":false,"interrupting":false,"turn":"t","leg":1,"shown":"> do","marks":[1,2],"located":true,"left":true,"prompt":"> ","typed_from":7,"reader":8,"edited":false,"note":null}}');
INSERT INTO "turns" VALUES('task-typed-working','{"task_id":"task-typed-working","launch_id":"l1","attempt":2,"continued":"x","link":{"phase":"working","submitted":true,"submit_ns":5,"submit_offset":6,"busy_seen":true,"resubmitted":true,"refused":false,"interrupting":false,"turn":"t","leg":1,"shown":"> do","marks":[1,2],"located":true,"left":true,"prompt":"> ","typed_from":7,"reader":8,"edited":false,"note":null}}');
INSERT INTO "turns" VALUES('task-typed-reading','{"task_id":"task-typed-reading","launch_id":"l1","attempt":2,"continued":"x","link":{"phase":"reading","submitted":true,"submit_ns":5,"submit_offset":6,"busy_seen":true,"resubmitted":true,"refused":false,"interrupting":false,"turn":"t","leg":1,"shown":"> do","marks":[1,2],"located":true,"left":true,"prompt":"> ","typed_from":7,"reader":8,"edited":false,"note":null}}');
INSERT INTO "turns" VALUES('task-typed-over','{"task_id":"task-typed-over","launch_id":"l1","attempt":2,"continued":"x","link":{"phase":"over","submitted":true,"submit_ns":5,"submit_offset":6,"busy_seen":true,"resubmitted":true,"refused":false,"interrupting":false,"turn":"t","leg":1,"shown":"> do","marks":[1,2],"located":true,"left":true,"prompt":"> ","typed_from":7,"reader":8,"edited":false,"note":null}}');
INSERT INTO "turns" VALUES('task-sent-sending','{"task_id":"task-sent-sending","launch_id":"l1","attempt":2,"continued":"x","link":{"by":"channel","channel":"server","phase":"sending","key":"k","minted_at":1.0,"submitted":true,"taken":true,"turn":"t","leg":1,"note":"no","interrupting":true,"refused_at":2.0}}');
INSERT INTO "turns" VALUES('task-sent-working','{"task_id":"task-sent-working","launch_id":"l1","attempt":2,"continued":"x","link":{"by":"channel","channel":"server","phase":"working","key":"k","minted_at":1.0,"submitted":true,"taken":true,"turn":"t","leg":1,"note":"no","interrupting":true,"refused_at":2.0}}');
INSERT INTO "turns" VALUES('task-sent-over','{"task_id":"task-sent-over","launch_id":"l1","attempt":2,"continued":"x","link":{"by":"channel","channel":"server","phase":"over","key":"k","minted_at":1.0,"submitted":true,"taken":true,"turn":"t","leg":1,"note":"no","interrupting":true,"refused_at":2.0}}');
INSERT INTO "turns" VALUES('task-working','{"task_id":"task-working","launch_id":"l1","attempt":1,"continued":null,"link":{}}');
CREATE INDEX events_task ON events (task_id) WHERE task_id IS NOT NULL;
CREATE INDEX events_agent ON events (agent_id);
CREATE INDEX tasks_recent ON tasks (updated_at, id, status);
CREATE INDEX tasks_agent ON tasks (agent_id, updated_at, id, status);
CREATE INDEX tasks_context ON tasks (context_id, updated_at, id, agent_id, status);
CREATE INDEX tasks_open ON tasks (seq) WHERE open = 1;
CREATE INDEX pushes_active ON pushes (seq) WHERE active = 1;
CREATE INDEX events_outside ON events (id) WHERE task_id IS NULL;
CREATE INDEX tasks_agent_status ON tasks (agent_id, status, updated_at, id);
CREATE INDEX events_attention ON events (agent_id, id) WHERE type = 'attention';
CREATE TRIGGER attention_told AFTER INSERT ON events WHEN new.type = 'attention' AND json_valid(new.data) BEGIN
  DELETE FROM open_attention WHERE agent_id = new.agent_id AND id = coalesce(new.data ->> '$.id', '');
  INSERT INTO open_attention (agent_id, id, event)
    SELECT new.agent_id, coalesce(new.data ->> '$.id', ''), new.id WHERE new.data ->> '$.state' = 'opened';
END;
CREATE TRIGGER attention_removed AFTER DELETE ON events WHEN old.type = 'attention' AND json_valid(old.data) BEGIN
  DELETE FROM open_attention
    WHERE agent_id = old.agent_id AND id = coalesce(old.data ->> '$.id', '') AND event = old.id;
END;
CREATE INDEX fleet_out_due ON fleet_out (seq_no) WHERE state = 'new';
CREATE INDEX fleet_out_task ON fleet_out (task_id);
CREATE INDEX fleet_in_owed ON fleet_in (src) WHERE receipted = 0;
COMMIT;
PRAGMA application_id = 1937337956;
PRAGMA user_version = 393227;
