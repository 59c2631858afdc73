// Notifications: in a page, this script subscribes the browser; as a service worker, it shows what arrives.
if (self.document) {
  const form = document.querySelector("form[data-notify]"), button = form.querySelector("button");
  const address = document.currentScript.src;
  const active = async () => {
    const registration = await navigator.serviceWorker.register(address);
    const worker = registration.installing || registration.waiting;
    if (!registration.active) await new Promise((done) => worker.addEventListener("statechange", () => registration.active && done()));
    return registration;
  };
  const base64 = (bytes) => btoa(String.fromCharCode(...new Uint8Array(bytes))).replace(/\+/g, "-").replace(/\//g, "_").replace(/=/g, "");
  if (navigator.serviceWorker && self.PushManager) button.disabled = false;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    button.disabled = true;
    try {
      if (await Notification.requestPermission() !== "granted") throw new Error("The browser does not permit notifications.");
      const manager = (await active()).pushManager;
      await (await manager.getSubscription())?.unsubscribe();
      const made = await manager.subscribe({ userVisibleOnly: true, applicationServerKey: form.dataset.notify });
      const fields = form.elements;
      fields.name.value = navigator.userAgentData?.brands.at(-1)?.brand || navigator.userAgent.split(" ").at(-1);
      fields.endpoint.value = made.endpoint;
      for (const key of ["p256dh", "auth"]) fields[key].value = base64(made.getKey(key));
      form.submit();
    } catch (error) {
      form.querySelector("[role=status]").textContent = error.message;
      button.disabled = false;
    }
  });
} else {
  self.addEventListener("push", (event) => {
    const { aps, url } = event.data.json(), tag = aps["thread-id"];
    event.waitUntil(self.registration.showNotification(aps.alert.title, { body: aps.alert.body, tag, renotify: true, data: url }));
  });
  self.addEventListener("notificationclick", (event) => {
    event.notification.close();
    if (event.notification.data) event.waitUntil(self.clients.openWindow(event.notification.data));
  });
}
