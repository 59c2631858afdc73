// Small comforts; every page works without them.
// A browser that has said no timezone says its own, once. The page of timezones takes it without a button.
const menu = document.querySelector("#zone");
menu?.addEventListener("change", () => menu.form.submit());
const here = Intl.DateTimeFormat().resolvedOptions().timeZone;
if (document.documentElement.dataset.zone === "unset" && here && document.querySelector(".zone").lastChild.textContent.trim() !== here) {
  try {
    if (!sessionStorage.getItem("zone")) {
      sessionStorage.setItem("zone", here);
      const form = Object.assign(document.createElement("form"), { method: "post", action: "/-/timezone", hidden: true });
      for (const [name, value] of [["zone", here], ["back", location.pathname + location.search]]) form.append(Object.assign(document.createElement("input"), { name, value }));
      document.body.append(form);
      form.submit();
    }
  } catch { /* no storage, no guess */ }
}

// A cell whose text is a shorter form of the end of its link says and copies that.
for (const at of document.querySelectorAll("td:is(.code, .tel):not([data-copy]) > a:not(:has(*))")) {
  const whole = decodeURIComponent(at.pathname.split("/").pop());
  at.parentNode.dataset.copy = whole;
  if (at.parentNode.className === "code") at.title ||= whole;
}

// Copy buttons, where the browser lets a page copy: over https, or on this machine.
for (const at of navigator.clipboard ? document.querySelectorAll("[data-copy]") : []) {
  const button = document.createElement("button");
  button.className = "copy";
  button.type = "button";
  const text = at.dataset.copy || at.textContent;
  button.setAttribute("aria-label", "Copy " + (at.dataset.copyName || text));
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(text);
    button.classList.add("done");
    setTimeout(() => button.classList.remove("done"), 1500);
  });
  at.tagName === "CODE" ? at.after(button) : at.append(button);
}

// An image is fetched when it is asked for, and shown where it stands.
for (const at of document.querySelectorAll("a[data-image]")) {
  at.addEventListener("click", (e) => {
    if (e.ctrlKey || e.metaKey || e.shiftKey) return;
    e.preventDefault();
    at.replaceChildren(Object.assign(new Image(), { src: at.href, alt: at.dataset.image }));
  }, { once: true });
}

// While a kind's newest page is in sight, the changes of the feed are counted;
// the link loads the page again. The browser itself comes back after a fault.
const live = document.querySelector("[data-feed]");
if (live) {
  const came = new Set(), changed = new Set();
  let feed, last, timer;
  const link = (text) => live.replaceChildren(Object.assign(document.createElement("a"), { href: location.pathname + location.search, textContent: text }));
  const say = () => {
    timer = 0;
    const words = [came.size && `${came.size} new`, changed.size && `${changed.size} changed`].filter(Boolean);
    if (words.length) link("Show " + words.join(", "));
  };
  const now = async () => { // null: the session has ended, and the page leads to sign-in
    const answer = await fetch(live.dataset.feed.replace("?", ".json?") + "&limit=1&after=now");
    if (answer.status !== 401) return answer.json();
    link("Your session has ended: sign in");
    return null;
  };
  const take = (e) => {
    last = e.lastEventId;
    const { id, what } = JSON.parse(e.data);
    if (what === "came") came.add(id);
    else if (!came.has(id)) changed.add(id);
    timer ||= setTimeout(say, 1000);
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
