// The service worker: the page opens without a line, and what an agent asks can be answered in the notification.

const worker = /** @type {any} */ (self);
/** Which page this worker is of, and what that is made of: the daemon writes it above. */
const { version, files } = /** @type {{version: string, files: string[]}} */ (worker.PAGE);
/** Where the page is: below it is all that it asks for, also where a proxy has it under a path of its own. */
const ROOT = new URL("..", location.href).pathname;
/** Pages under other paths of this origin have theirs beside it. */
const OWN = ROOT === "/" ? "synapsed-" : `synapsed${ROOT}`;
const KEPT = OWN + version;
const ICON = `${ROOT}web/icons/icon-192.png`;
/** @param {string} name */
const at = (name) => `${ROOT}web/${version}/${name}`;

worker.addEventListener("install", (/** @type {any} */ event) => event.waitUntil(install()));
worker.addEventListener("activate", (/** @type {any} */ event) => event.waitUntil(tidy().then(() => worker.clients.claim())));

/** All of the page or nothing: where a file is missing, the worker before this one goes on with its own. */
async function install() {
  const all = await Promise.all(files.map(async (name) => {
    const answer = await fetch(at(name));
    if (!answer.ok) throw new Error(`${name}: ${answer.status}`);
    await answer.clone().arrayBuffer();
    return answer;
  }));
  try {
    const kept = await caches.open(KEPT);
    await Promise.all(all.map((answer, index) => kept.put(at(files[index] ?? ""), answer)));
  } catch {
    // There is no room: the page comes from the daemon each time.
    await caches.delete(KEPT).catch(() => false);
  }
  await worker.skipWaiting();
}

/** The page before this one may still be open, and load a part of its own. */
async function tidy() {
  const others = (await caches.keys().catch(() => [])).filter((name) => name !== KEPT && name.slice(0, -version.length) === OWN);
  await Promise.all(others.slice(0, -1).map((name) => caches.delete(name)));
}

worker.addEventListener("fetch", (/** @type {any} */ event) => {
  const { request } = event;
  const { origin, pathname } = new URL(request.url);
  if (request.method !== "GET" || origin !== location.origin) return;
  // What the API says is never kept.
  if (pathname === ROOT) event.respondWith(known(at("index.html")).then((kept) => kept ?? fetch(request)));
  else if (pathname.startsWith(`${ROOT}web/`) && /^[0-9a-f]{16}\//.test(pathname.slice(ROOT.length + 4))) event.respondWith(file(request, pathname));
});

/** @param {any} what */
const known = (what) => caches.match(what).catch(() => undefined);

/** An address with a version in it is always the same. @param {Request} request @param {string} pathname */
async function file(request, pathname) {
  const kept = await known(request);
  if (kept) return kept;
  const answer = await fetch(request);
  if (answer.ok && pathname.startsWith(at(""))) {
    const copy = answer.clone();
    void caches.open(KEPT).then((cache) => cache.put(request, copy)).catch(() => {});
  }
  return answer;
}

// --- notifications ---------------------------------------------------------------------------------------------------

/** One after another: while Chromium shows a notification, whoever asks it which ones there are takes that one away.
 * @type {Promise<any>} */
let turn = Promise.resolve();
/** @template T @param {() => Promise<T>} act @returns {Promise<T>} */
function inTurn(act) {
  const done = turn.then(act);
  turn = done.catch(() => {});
  return done;
}

/** Milliseconds in which nobody has read a notification: its buttons only open the page. */
const NOTICED = 1000;

/** What is told of an item: `{id, state, kind, agent, title, body, task, prompt_id, options}`. @param {any} event */
function onPush(event) {
  let told = /** @type {any} */ ({});
  try {
    told = event.data?.json() ?? {};
  } catch {
    // A message that is no JSON is not the daemon's.
  }
  event.waitUntil(inTurn(() => (told.state === "gone" ? takeBack(told) : show(told))));
}

/** It is answered, or not asked any more. A browser that counts pushes without a notification, and takes the subscription
 * away after a few, is shown for a moment that it is over; the others have `maxActions`. @param {any} told */
async function takeBack(told) {
  const tag = String(told.id);
  const shown = await worker.registration.getNotifications({ tag });
  if (!("maxActions" in Notification)) {
    const title = shown[0]?.title ?? "synapsed";
    await worker.registration.showNotification(title, { tag, body: "This is settled.", silent: true, icon: ICON });
  }
  for (const one of await worker.registration.getNotifications({ tag })) one.close();
}

/** @param {any} told */
async function show(told) {
  const tag = String(told.id ?? "synapsed");
  const windows = await worker.clients.matchAll({ type: "window" });
  const seen = windows.some((/** @type {any} */ one) => one.focused && one.visibilityState === "visible");
  const options = Array.isArray(told.options) && told.prompt_id ? told.options.slice(0, 2) : [];
  await worker.registration.showNotification(String(told.title ?? "An agent waits for you").slice(0, 120), {
    tag,
    body: String(told.body ?? "").slice(0, 400),
    icon: ICON,
    badge: ICON,
    silent: seen,
    renotify: !seen,
    requireInteraction: Boolean(told.prompt_id),
    actions: options.map((/** @type {any} */ option) => ({ action: `answer:${option.key}`, title: String(option.label).slice(0, 40) })),
    data: { ...told, shown: Date.now() },
  });
}

worker.addEventListener("push", onPush);

worker.addEventListener("pushsubscriptionchange", (/** @type {any} */ event) => event.waitUntil(renew()));

/** The browser has given up its address, or got another one: the daemon is told the new one. */
async function renew() {
  const headers = { "Content-Type": "application/json", "Synapsed-Page": "1" };
  const asked = await fetch(`${ROOT}web/me`, { headers, credentials: "same-origin" });
  const key = asked.ok ? (await asked.json()).push_key : null;
  if (!key) return;
  const made = await worker.registration.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key });
  await fetch(`${ROOT}web/push`, { method: "POST", headers, credentials: "same-origin", body: JSON.stringify(made) });
}

worker.addEventListener("notificationclick", (/** @type {any} */ event) => {
  const { notification, action } = event;
  const told = notification.data ?? {};
  notification.close();
  const read = Math.abs(Date.now() - told.shown) >= NOTICED; // else it has taken the place of another under the finger
  event.waitUntil(action.startsWith("answer:") && read ? give(told, action.slice(7)) : open(told));
});

/** @param {any} told */
async function open(told) {
  const address = told.agent && !told.elsewhere ? `${ROOT}#/agent/${encodeURIComponent(told.agent)}` : ROOT;
  for (const one of await worker.clients.matchAll({ type: "window" })) {
    if ("focus" in one) {
      await one.focus();
      await one.navigate?.(address).catch(() => {});
      return;
    }
  }
  await worker.clients.openWindow(address);
}

/** The answer goes the way of every answer: with the device's cookie, the prompt's id and a key of its own. @param {any} told @param {string} key */
async function give(told, key) {
  // The name of an agent elsewhere may be that of an agent here, too; its task is nobody else's.
  const agent = told.elsewhere ? "control" : `agents/${encodeURIComponent(told.agent)}`;
  const path = ROOT + (told.task ? `${agent}/tasks/${told.task}/input` : `control/${agent}/input`);
  const headers = { "Content-Type": "application/json", "Synapsed-Page": "1", "Idempotency-Key": `push-${told.id}-${told.prompt_id}`.replace(/[^\x21-\x7e]/g, "").slice(0, 256) };
  let problem = "It could not be sent: open the page.";
  for (let tries = 0; tries < 4; tries += 1) {
    try {
      const answer = await fetch(path, { method: "POST", headers, body: JSON.stringify({ input: key, prompt_id: told.prompt_id }), credentials: "same-origin" });
      if (answer.ok) return;
      const said = await answer.json().catch(() => ({}));
      if (answer.status < 500) {
        if (["PROMPT_CHANGED", "NOT_WAITING"].includes(said.error?.code)) return;
        problem = String(said.error?.message ?? problem);
        break;
      }
    } catch {
      // A bad line: the same answer under the same key, a little later.
    }
    await new Promise((resolve) => setTimeout(resolve, 1500 * (tries + 1)));
  }
  await inTurn(() => worker.registration.showNotification(`${told.agent}: not answered`, { tag: `${told.id}-failed`, body: problem, icon: ICON, data: { agent: told.agent } }));
}
