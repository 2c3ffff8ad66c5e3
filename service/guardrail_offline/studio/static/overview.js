import { ask, find } from "/static/requests.js";

const button = find("invite");
if (button) {
  button.addEventListener("click", async () => {
    const { address } = await ask("/invite", "POST");
    find("invitation").textContent = address;
  });
}
