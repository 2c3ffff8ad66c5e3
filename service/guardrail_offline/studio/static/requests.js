// Requests to the studio. Every one that changes something carries the session's token.
const csrf = document.querySelector('meta[name="csrf"]').content;

export class Refused extends Error {
  constructor(status, detail) { super(detail); this.status = status; }
}

export async function ask(address, method = "GET", body = undefined) {
  const headers = { Accept: "application/json" };
  if (method !== "GET") headers["X-CSRF-Token"] = csrf;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const reply = await fetch(address, {
    method, headers, credentials: "same-origin", cache: "no-store",
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const isJson = (reply.headers.get("content-type") || "").startsWith("application/json");
  const content = isJson ? await reply.json() : await reply.text();
  if (!reply.ok) {
    const refused = new Refused(reply.status, isJson ? content.detail || "" : content);
    refused.content = content;
    throw refused;
  }
  return content;
}

// Everything from outside reaches a page through here: as text and attributes, never as markup.
export function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === true) element.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(key, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export function find(id) { return document.getElementById(id); }
