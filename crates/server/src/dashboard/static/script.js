// What pages do beyond what the server does: they follow what happens, count down, copy, and tell the viewer's time zone.
// Without it, every page shows the same and every form works; only a reload shows what changed.
"use strict";

(() => {
  // The zone that times are shown in.
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const cookie = "tidegate_zone=" + encodeURIComponent(zone);
  const isNews = zone && !document.cookie.split("; ").includes(cookie);
  if (isNews) document.cookie = cookie + "; path=/; max-age=31536000; samesite=lax";

  // A page that answers a form has an address of its own from now on: a reload shows it, and does not send the form again.
  const standsAt = document.body.dataset.standsAt;
  if (standsAt) history.replaceState(null, "", standsAt);

  // Countdowns.
  const span = (ms) => {
    const seconds = Math.round(ms / 1000);
    const units = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
    const first = units.findIndex(([size]) => seconds >= size);
    if (first < 0) return "0 s";
    const [size, unit] = units[first];
    const next = units[first + 1];
    const rest = next ? Math.floor((seconds % size) / next[0]) : 0;
    return Math.floor(seconds / size) + " " + unit + (rest ? " " + rest + " " + next[1] : "");
  };
  const count = () => {
    for (const time of document.querySelectorAll("[data-counts]")) {
      const left = new Date(time.dateTime) - Date.now();
      const text = left > 0 ? "in " + span(left) : span(-left) + " ago";
      if (time.textContent !== text) time.textContent = text;
    }
  };
  setInterval(count, 1000);

  // Live parts: the page is fetched again, and each part that changed is put in place of the old one.
  const live = document.getElementById("live");
  const say = (text) => { if (live && live.textContent !== text) live.textContent = text; };
  // At most once a second, and with a page that is dear to make, so seldom that it costs a tenth of the time at most.
  const PAUSE = 1000;
  let took = 0;
  let waiting = 0;
  let asked = false;
  let last = 0;
  let over = false;

  function refresh() {
    if (waiting || over) return;
    if (document.hidden || asked) { waiting = setTimeout(() => { waiting = 0; refresh(); }, PAUSE); return; }
    waiting = setTimeout(fetchPage, Math.max(0, last + Math.max(PAUSE, 10 * took) - Date.now()));
  }

  function fetchPage() {
    waiting = 0;
    last = Date.now();
    asked = true;
    const request = new XMLHttpRequest();
    request.open("GET", location.pathname + location.search);
    // The browser parses it without running anything in it.
    request.responseType = "document";
    request.timeout = 10000;
    request.onloadend = () => {
      asked = false;
      took = Date.now() - last;
      const page = request.response;
      if (request.status !== 200 || !page) return;
      if (page.body.dataset.liveFrom) swap(page); else end();
    };
    request.send();
  }

  function swap(page) {
    for (const part of document.querySelectorAll("[data-live]")) {
      const other = page.querySelector('[data-live="' + CSS.escape(part.dataset.live) + '"]');
      if (!other || part.isEqualNode(other) || isBusy(part)) continue;
      keepOpen(part, other);
      part.replaceWith(document.importNode(other, true));
    }
    count();
    addCopies();
  }

  // Nothing is taken from under the hands of somebody who types, chooses or marks text.
  const isBusy = (part) => {
    const active = document.activeElement;
    if (active && active !== document.body && part.contains(active)) return true;
    const selected = document.getSelection();
    return selected && !selected.isCollapsed && part.contains(selected.anchorNode);
  };

  const keepOpen = (part, other) => {
    const now = part.querySelectorAll("details");
    const next = other.querySelectorAll("details");
    if (now.length === next.length) now.forEach((one, place) => { next[place].open = one.open; });
  };

  const KINDS = ["delivery", "circuit_opened", "circuit_closed", "throttled", "timeout_changed", "order_halted",
    "paused", "resumed", "disabled", "enabled", "account_paused", "account_resumed", "missed"];
  let source = null;

  function follow() {
    if (over) return;
    source = new EventSource(document.body.dataset.liveFrom);
    source.onopen = () => { say("● Live"); refresh(); };
    source.onerror = () => {
      say("○ Not connected: trying again");
      if (source.readyState !== EventSource.CLOSED) return;
      // The browser does not try again after an answer that is no stream: the page tells whether the session is over.
      setTimeout(follow, 5000);
      refresh();
    };
    for (const kind of KINDS) source.addEventListener(kind, refresh);
  }

  // The server asks to sign in. What somebody is writing stays where it is.
  function end() {
    over = true;
    if (source) source.close();
    say("○ Signed out: reload to sign in again");
  }

  if (document.body.dataset.liveFrom && document.querySelector("[data-live]:not([data-live=paused])")) {
    follow();
    // What time alone changes: a window that ends, a token that comes back.
    setInterval(refresh, document.querySelector("[data-often]") ? 1000 : 5000);
  }
  // The first page after the zone has changed is shown in it as well.
  if (isNews && document.body.dataset.liveFrom) refresh();

  // Copying.
  function addCopies() {
    for (const text of document.querySelectorAll("[data-copies]")) {
      if (text.previousElementSibling && text.previousElementSibling.classList.contains("copy")) continue;
      const button = document.createElement("button");
      button.type = "button";
      button.className = "copy quiet";
      button.textContent = "Copy";
      button.addEventListener("click", async () => {
        if (navigator.clipboard) {
          await navigator.clipboard.writeText(text.textContent);
        } else {
          // Browsers give the clipboard to secure pages only; what is marked can be copied everywhere.
          document.getSelection().selectAllChildren(text);
          document.execCommand("copy");
        }
        button.textContent = "Copied";
        setTimeout(() => { button.textContent = "Copy"; }, 2000);
      });
      text.before(button);
    }
  }
  addCopies();

  // A choice that needs no button.
  for (const field of document.querySelectorAll("[data-submits]")) {
    field.addEventListener("change", () => field.form.submit());
  }
})();
