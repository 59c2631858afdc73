// Live rows: while a list is in sight, the feed tells what changed. Rows of it change in place: the list is asked for
// those records, as it is filtered, and their cells are put in. On the newest page of all, what came is counted, and a
// link loads the page again. The browser itself comes back after a fault.
{
  const live = document.querySelector("[data-feed]"), told = live.nextElementSibling;
  const came = new Set(), changed = new Set(), stale = new Set();
  let feed, last, timer, updating, units;
  const link = (text) => live.replaceChildren(Object.assign(document.createElement("a"), { href: location.pathname + location.search, textContent: text }));
  const say = () => {
    timer = 0;
    const words = [came.size && `${came.size} new`, changed.size && `${changed.size} changed`].filter(Boolean);
    if (words.length || units) link("Show " + (words.join(", ") || "what changed"));
  };

  const rowsOf = (page) => new Map([...page.querySelectorAll("#rows > tr")].map((tr) => {
    const path = tr.cells[0]?.querySelector("a[href]")?.pathname ?? "";
    return [path.startsWith(location.pathname + "/") ? decodeURIComponent(path.slice(location.pathname.length + 1)) : "", tr];
  }));
  const rows = live.dataset.rows ? rowsOf(document) : new Map();
  rows.delete("");
  const put = (tr, now) => { // true: a cell is another one
    tr.className = now.className;
    if (tr.cells.length !== now.cells.length) return false;
    const fresh = [...now.cells].filter((cell, i) => cell.textContent !== tr.cells[i].textContent).map((cell) => [tr.cells[cell.cellIndex], cell]);
    for (const [old, cell] of fresh) {
      const focused = old.contains(document.activeElement);
      old.replaceWith(cell);
      cell.classList.add("fresh");
      cell.dispatchEvent(new CustomEvent("dress", { bubbles: true }));
      if (focused) cell.querySelector("a, button")?.focus();
    }
    return fresh.length > 0;
  };
  const update = async () => {
    const ids = [...stale].slice(0, 50); // as many as one question takes
    ids.forEach((id) => stale.delete(id));
    const answer = await fetch(live.dataset.rows + encodeURIComponent("id:" + ids.join(",")));
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (!answer.ok || !page.querySelector("[data-rows]")) return;
    const head = (of) => of.querySelector("thead")?.textContent;
    if (page.querySelector("#rows") && head(page) !== head(document)) { // the columns are in other units now
      units = true;
      say();
      return;
    }
    const now = rowsOf(page);
    let n = 0, left = 0;
    for (const id of ids) {
      const tr = rows.get(id);
      if (now.has(id)) n += put(tr, now.get(id));
      else left += !tr.classList.contains("left");
      tr.classList.toggle("left", !now.has(id));
      tr.title = now.has(id) ? "" : "No longer in this list; the row disappears when you reload the page";
    }
    told.textContent = [n && `${n} ${n > 1 ? "rows" : "row"} changed`, left && `${left} no longer in this list`].filter(Boolean).join(", ");
  };
  const later = () => updating ||= setTimeout(() => update().catch(() => { /* the next change asks again */ }).then(() => {
    updating = 0;
    if (stale.size) later();
  }), 500);

  const now = async () => { // null: the session has ended, and the page leads to sign-in
    const answer = await fetch(live.dataset.feed.replace("?", ".json?") + "&limit=1&after=now");
    if (answer.status !== 401) return answer.json();
    link("Your session has ended: sign in");
    return null;
  };
  const take = (e) => {
    last = e.lastEventId;
    const { id, what } = JSON.parse(e.data);
    if (rows.has(id)) {
      stale.add(id);
      later();
    } else if ("news" in live.dataset && (what === "came" || !rows.size && !came.has(id))) {
      (what === "came" ? came : changed).add(id);
      timer ||= setTimeout(say, 1000);
    }
  };
  const listen = async () => {
    feed?.close();
    feed = null;
    if (document.hidden) return;
    if (!last) {
      const at = await now();
      if (!at) return;
      last = at.next ?? "now";
    }
    if (feed || document.hidden) return;
    feed = new EventSource(live.dataset.feed + "&after=" + encodeURIComponent(last));
    feed.onmessage = take;
    feed.onerror = () => { // closed is refused: full, or the place is another role's by now; begin anew in a while
      if (feed?.readyState !== 2) return;
      feed = last = null;
      now().then((at) => at && setTimeout(start, 30000), () => setTimeout(start, 30000));
    };
  };
  const start = () => listen().catch(() => { /* no feed, no count */ });
  addEventListener("visibilitychange", start);
  addEventListener("pagehide", () => feed?.close());
  start();
}
