"use strict";
// Texts reach the page as text alone (textContent), never as markup.

const $ = (id) => document.getElementById(id);
const words = (name) => String(name).replaceAll("_", " ");
const KEPT = "progrl.saved";
const ID = decodeURIComponent(location.pathname.match(/^\/games\/([^/]+)$/)?.[1] ?? "");
const DRAFT = `progrl.draft.${ID}`;

function element(tag, text = "", className = "") {
  const made = document.createElement(tag);
  made.textContent = text;
  if (className) made.className = className;
  return made;
}

function option(value, text = value) {
  const made = element("option", text);
  made.value = value;
  return made;
}

function banner(text) {
  $("banner").textContent = text;
  $("banner").hidden = !text;
}

/** The answer's JSON; throws an Error with the server's own words and the status. */
async function ask(path, body) {
  const options = body === undefined ? {} : {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  };
  const response = await fetch(path, options);
  const value = await response.json().catch(() => ({}));
  if (!response.ok) {
    throw Object.assign(new Error(value.error || `The server answered ${response.status}.`), { status: response.status });
  }
  return value;
}

function reason(error) {
  return error.status ? error.message : "The server cannot be reached. Is it still running?";
}

// What was saved from this browser, so that it can be deleted later.
function kept() {
  try {
    const found = JSON.parse(localStorage.getItem(KEPT) || "[]");
    return Array.isArray(found) ? found : [];
  } catch {
    return [];
  }
}
const keep = (list) => localStorage.setItem(KEPT, JSON.stringify(list));
const forget = (name) => keep(kept().filter((each) => each.name !== name));

async function remove(name) {
  try {
    await ask(`/api/saved/${encodeURIComponent(name)}/delete`, {});
  } catch (error) {
    if (error.status !== 404) return banner(reason(error));
  }
  forget(name);
  return banner("");
}

// ---- the lobby

function showKept() {
  const rows = kept().map(({ name, label }) => {
    const row = element("li", label);
    const button = element("button", "Delete");
    button.type = "button";
    button.setAttribute("aria-label", `Delete: ${label}`);
    button.addEventListener("click", () => remove(name).then(showKept));
    row.append(button);
    return row;
  });
  $("kept-list").replaceChildren(...rows);
  $("kept").hidden = !rows.length;
}

async function lobby() {
  $("lobby").hidden = false;
  showKept();
  let offer;
  try {
    offer = await ask("/api/offer");
  } catch (error) {
    return banner(reason(error));
  }
  const form = $("start");
  const chosen = () => offer.environments.find((each) => each.name === $("environment").value);
  const described = () => {
    const { description, levels, talks } = chosen();
    $("about").textContent = description + (talks ? "" : " Here the user has nothing to tell: you can be the agent.");
    const before = $("level").value;
    $("level").replaceChildren(option("0", "any"), ...levels.map((level) => option(`${level}`)));
    if (levels.includes(Number(before))) $("level").value = before;
    const [user, agent] = form.elements.role;
    user.disabled = !talks;
    if (!talks) agent.checked = true;
    $("opponent").hidden = form.elements.role.value !== "user";
  };
  $("environment").append(...offer.environments.map(({ name }) => option(name)));
  $("agent").append(...offer.agents.map((name) => option(name)));
  if (offer.environments.some(({ name }) => name === "retail")) $("environment").value = "retail";
  form.addEventListener("change", described);
  described();
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = form.querySelector("button");
    button.disabled = true;
    $("starting").textContent = "Getting ready. The first game in an environment takes a moment.";
    try {
      const { id } = await ask("/api/games", {
        environment: $("environment").value,
        level: Number($("level").value),
        role: form.elements.role.value,
        agent: form.elements.role.value === "user" ? $("agent").value : "",
      });
      location.assign(`/games/${encodeURIComponent(id)}`);
    } catch (error) {
      banner(reason(error));
      $("starting").textContent = "";
      button.disabled = false;
    }
  });
  return undefined;
}

// ---- a game

let state = null;
let shown = 0;
let toolNames = "";
let sending = false;

function speaker(entry) {
  const mine = state.role === "user" ? "user" : "say";
  switch (entry.kind) {
    case "user": return mine === "user" ? "you" : "user";
    case "say": return mine === "say" ? "you" : "agent";
    case "call": return mine === "say" ? "you call" : "agent calls";
    case "broken": return mine === "say" ? "you (not understood)" : "agent (no valid action)";
    default: return "result";
  }
}

function bubble(entry) {
  const mine = (state.role === "user") === (entry.kind === "user");
  const side = ["user", "say"].includes(entry.kind) ? (mine ? "mine" : "theirs") : "";
  const item = element("li", "", `entry ${entry.kind} ${side} ${entry.failed ? "failed" : ""}`);
  const who = element("span", speaker(entry), "who");
  who.append(...entry.notes.map((note) => element("span", note, "note")));
  item.append(who);
  if (entry.kind === "call") {
    const written = entry.arguments.map(([key, value]) => `${key}=${value}`).join(", ");
    item.append(element("code", `${entry.text}(${written})`));
  } else if (entry.kind === "result" && state.role === "user") {
    const details = element("details");
    details.append(element("summary", "what came back"), element("code", entry.text));
    item.append(details);
  } else {
    item.append(element(entry.kind === "result" ? "code" : "p", entry.text || "(nothing)"));
  }
  return item;
}

function showChat() {
  const chat = $("chat");
  chat.classList.toggle("by-agent", state.role === "agent");
  if (state.status === "over" || state.entries.length < shown) {
    chat.replaceChildren(...state.entries.map(bubble));
  } else {
    chat.append(...state.entries.slice(shown).map(bubble));
  }
  const grown = state.entries.length > shown;
  shown = state.entries.length;
  if (grown && state.status !== "over") $("status").scrollIntoView({ block: "nearest" });
}

function pairs(list, target) {
  target.replaceChildren(...list.flatMap(([key, value]) => [element("dt", key), element("dd", value)]));
}

function showBrief() {
  const { wishes, facts } = state.brief;
  $("brief").hidden = false;
  $("wishes").replaceChildren(...(wishes.length ? wishes : ["what your first words say"]).map((wish) => element("li", wish)));
  pairs(facts, $("known"));
  $("known").classList.toggle("many", facts.length > 12);
  $("change").hidden = !state.change;
  $("change").textContent = state.change ? `You change your mind. Say, in your words: ${state.change}` : "";
}

function field(name, schema, needed) {
  const row = element("p");
  const label = element("label", needed ? words(name) : `${words(name)} (optional)`);
  const choices = schema.enum ?? (schema.type === "boolean" ? ["true", "false"] : null);
  const input = element(choices ? "select" : "input");
  if (choices) input.append(...(needed ? [] : [option("", "")]), ...choices.map((each) => option(`${each}`)));
  else Object.assign(input, { type: "text", placeholder: schema.description ?? "", autocomplete: "off" });
  Object.assign(input, { id: `argument-${name}`, name, required: needed });
  label.htmlFor = input.id;
  row.append(label, input);
  return row;
}

function showTool() {
  const tool = state.tools.find((each) => each.name === $("tool").value);
  if (!tool) return;
  const needed = new Set(tool.parameters.required ?? []);
  const fields = Object.entries(tool.parameters.properties ?? {});
  $("tool-about").textContent = tool.description + (tool.writes ? " It changes something." : "");
  $("arguments").replaceChildren(...fields.map(([name, schema]) => field(name, schema, needed.has(name))));
}

function showTools() {
  $("policy").hidden = $("calls").hidden = false;
  $("policy-text").textContent = state.policy;
  const names = state.tools.map(({ name }) => name).join(" ");
  if (names === toolNames) return;
  toolNames = names;
  $("tool").replaceChildren(...state.tools.map(({ name }) => option(name)));
  showTool();
}

function showResult() {
  const { result } = state;
  const first = $("result").hidden;
  $("result").hidden = false;
  $("verdict").textContent = result.success ? "Solved" : "Not solved";
  $("ending").textContent = result.ending;
  pairs([
    ["reward", result.reward === null ? "none: a fault ended the game" : result.reward.toFixed(2)],
    ["agent turns", `${result.turns} (an expert takes ${result.expert_turns})`],
    ["policy", result.policy_kept === null ? "-" : result.policy_kept ? "kept" : "broken"],
    ["task", `${words(result.family)}, level ${state.level} (${result.task})`],
  ], $("figures"));
  $("milestones").replaceChildren(...result.milestones.map(([name, weight, reached]) => {
    const item = element("li", `${words(name)} (${Math.round(100 * weight)}%)`, reached ? "reached" : "");
    item.append(element("small", reached ? " reached" : " not reached"));
    return item;
  }));
  $("rate-legend").textContent = state.role === "user" ? "How good was the agent?" : "How good was the user?";
  $("rate").hidden = state.rating !== null;
  $("rated").hidden = state.rating === null;
  $("delete").hidden = !state.saved;
  $("thanks").textContent = `You gave ${state.rating} of 5. ` + (state.saved ? "The game is saved." : "Nothing of this game is on disk.");
  $("again").hidden = false;
  $("quit").hidden = true;
  if (first) $("verdict").focus();
}

function show(fresh) {
  if (state && fresh.version < state.version) return;
  state = fresh;
  const yours = state.status === "yours";
  const over = state.status === "over";
  $("title").textContent = state.role === "user" ? "You are the user" : "You are the agent";
  $("facts").replaceChildren(...[
    ["environment", state.environment],
    ["level", state.level],
    ...(state.role === "user" ? [["agent", state.agent]] : []),
    ["turn", `${state.turn} of ${state.horizon}`],
  ].map(([name, value]) => {
    const item = element("li");
    item.append(element("span", name), String(value));
    return item;
  }));
  if (state.role === "user") showBrief(); else showTools();
  showChat();
  $("say").hidden = over;
  $("calls").hidden = over || state.role === "user";
  for (const button of document.querySelectorAll("#say button, #call button")) button.disabled = !yours || sending;
  $("status").textContent = over ? "" : yours ? "Your turn." : state.role === "user" ? "The agent is busy …" : "The user is busy …";
  if (over) showResult();
  else if (yours && document.activeElement === document.body && matchMedia("(hover: hover)").matches) $("text").focus({ preventScroll: true });
}

async function say(body) {
  if (sending || state.status !== "yours") return;
  sending = true;
  if (!body.call) draft(""); // at once: what is typed meanwhile is the next message
  try {
    const fresh = await ask(`/api/games/${encodeURIComponent(ID)}/say`, { asked: state.asked, ...body });
    banner("");
    sending = false;
    show(fresh);
  } catch (error) {
    if (!body.call && !$("text").value) draft(body.text ?? "");
    banner(reason(error));
  } finally {
    sending = false;
    show(state);
  }
}

function draft(text) {
  $("text").value = text;
  sessionStorage.setItem(DRAFT, text);
}

async function rate(event) {
  event.preventDefault();
  const button = $("rate").querySelector("button");
  button.disabled = true;
  try {
    const body = { stars: Number($("rate").elements.stars.value), words: $("words").value, save: $("save").checked };
    const fresh = await ask(`/api/games/${encodeURIComponent(ID)}/rate`, body);
    if (fresh.saved) keep([...kept(), { name: fresh.saved, label: `${fresh.environment}, level ${fresh.level}, you were the ${fresh.role}` }]);
    banner("");
    show(fresh);
  } catch (error) {
    banner(reason(error));
  }
  button.disabled = false;
}

function listen() {
  $("text-label").textContent = state.role === "user" ? "What you say to the agent" : "What you say to the user";
  $("text-help").textContent = "Enter sends, Shift and Enter begin a line.";
  $("text").value = sessionStorage.getItem(DRAFT) ?? "";
  $("close").hidden = state.role === "user";
  $("leave").hidden = state.role === "agent";
  $("text").addEventListener("input", () => sessionStorage.setItem(DRAFT, $("text").value));
  $("text").addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    $("say").requestSubmit($("send"));
  });
  $("say").addEventListener("submit", (event) => {
    event.preventDefault();
    if ($("text").value.trim()) say({ text: $("text").value });
    else $("text").focus();
  });
  $("close").addEventListener("click", () => say({ text: $("text").value, close: true }));
  $("leave").addEventListener("click", () => say({ leave: true }));
  $("tool").addEventListener("change", showTool);
  $("call").addEventListener("submit", (event) => {
    event.preventDefault();
    const given = [...$("arguments").querySelectorAll("input, select")].filter((input) => input.value.trim());
    say({ call: $("tool").value, arguments: Object.fromEntries(given.map((input) => [input.name, input.value.trim()])) });
  });
  $("rate").addEventListener("submit", rate);
  $("delete").addEventListener("click", () => remove(state.saved));
  $("quit").addEventListener("click", async () => {
    if (!confirm("Give up this game? It will be forgotten.")) return;
    await ask(`/api/games/${encodeURIComponent(ID)}/end`, {}).catch(() => {});
    location.assign("/");
  });
}

async function game() {
  const path = `/api/games/${encodeURIComponent(ID)}`;
  for (let pause = 500; ;) {
    try {
      const fresh = await ask(state ? `${path}?seen=${state.version}` : path);
      if (!state) {
        state = fresh;
        listen();
        const { folder, message } = await ask("/api/offer");
        $("where").textContent = `in the folder ${folder}; nothing is saved without this tick`;
        $("text").maxLength = $("words").maxLength = message;
        $("game").hidden = false;
      }
      pause = 500;
      banner("");
      show(fresh);
    } catch (error) {
      banner(reason(error));
      if (error.status === 404) {
        $("say").hidden = true;
        $("lobby").hidden = Boolean(state);
        if (!state) lobby();
        return;
      }
      await new Promise((resolve) => setTimeout(resolve, pause));
      pause = Math.min(2 * pause, 8000);
    }
  }
}

if (ID) game(); else lobby();
