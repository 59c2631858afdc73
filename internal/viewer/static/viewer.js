// Small comforts; every page works without them.
const zone = document.querySelector(".zone");
const menu = zone.querySelector("select");

// The menu needs no button, and a browser that has said no timezone says its own, once.
menu.addEventListener("change", () => zone.submit());
zone.classList.add("live");
const here = Intl.DateTimeFormat().resolvedOptions().timeZone;
if (document.documentElement.dataset.zone === "unset" && here && here !== menu.value) {
  try {
    if (!sessionStorage.getItem("zone")) {
      sessionStorage.setItem("zone", here);
      menu.add(new Option(here, here, true, true));
      zone.submit();
    }
  } catch { /* no storage, no guess */ }
}

// Copy buttons, where the browser lets a page copy: over https, or on this machine.
for (const at of navigator.clipboard ? document.querySelectorAll("[data-copy]") : []) {
  const button = document.createElement("button");
  button.className = "copy";
  button.type = "button";
  button.setAttribute("aria-label", "Copy " + at.dataset.copy);
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(at.dataset.copy);
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
  const say = () => {
    timer = 0;
    const words = [came.size && `${came.size} new`, changed.size && `${changed.size} changed`].filter(Boolean);
    if (words.length) live.replaceChildren(Object.assign(document.createElement("a"), { href: location.pathname + location.search, textContent: "Show " + words.join(", ") }));
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
    last ||= (await (await fetch(live.dataset.feed.replace("?", ".json?") + "&limit=1&after=now")).json()).next ?? "now";
    if (feed || document.hidden) return;
    feed = new EventSource(live.dataset.feed + "&after=" + encodeURIComponent(last));
    feed.onmessage = take;
    feed.onerror = () => { // closed is refused: full, or the place is another role's by now; begin anew in a while
      if (feed?.readyState === 2) feed = last = null, setTimeout(start, 30000);
    };
  };
  const start = () => listen().catch(() => { /* no feed, no count */ });
  addEventListener("visibilitychange", start);
  addEventListener("pagehide", () => feed?.close());
  start();
}

// Counts that were not there in time are fetched after the page and put in their place.
for (const at of document.querySelectorAll("[data-late]")) {
  fetch(at.dataset.late, { headers: { "Understudy-Part": "counts" } }).then((r) => r.ok ? r.text() : Promise.reject()).then((text) => {
    const part = new DOMParser().parseFromString(text, "text/html"), came = part.getElementById(at.id), total = document.getElementById("total");
    if (!came) at.remove(); // there is nothing to count
    else if (!came.dataset.late) at.replaceWith(came);
    if (total) total.textContent = part.getElementById("total").textContent || total.textContent;
  }).catch(() => { /* the link is still there */ });
}
