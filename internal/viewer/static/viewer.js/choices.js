// What a browser chooses for itself. It works without, on the page of timezones and themes.
// A browser that has said no timezone says its own, once. A page with times is loaded again to show them in it, unless somebody
// has begun to fill in a form: typing stops the loading, too. The page of timezones takes a choice without a button.
const menu = document.querySelector("#zone");
menu?.addEventListener("change", () => menu.form.submit());
const here = Intl.DateTimeFormat().resolvedOptions().timeZone;
if (document.documentElement.dataset.zone === "unset" && here && document.querySelector("a[href^='/-/timezone']").lastChild.textContent.trim() !== here) {
  try {
    if (!sessionStorage.getItem("zone")) {
      sessionStorage.setItem("zone", here);
      let typed = [...document.querySelectorAll("input, textarea")].some((at) => at.value !== at.defaultValue), loading = false;
      addEventListener("input", () => {
        typed = true;
        if (loading) stop();
      });
      fetch("/-/timezone", { method: "POST", body: new URLSearchParams({ zone: here }), redirect: "manual", keepalive: true }).then(() => {
        if (!document.querySelector("time")) document.querySelector("a[href^='/-/timezone']").lastChild.textContent = " " + here;
        else if (!typed) location.reload(loading = true);
      }).catch(() => { /* the next session tries again */ });
    }
  } catch { /* no storage, no guess */ }
}

