// What the page adds where scripts run: shortcuts, and replies that arrive. All else works without.

const $ = (selector, root = document) => root.querySelector(selector)
const $$ = (selector, root = document) => [...root.querySelectorAll(selector)]
const SWAP = { target: "#view", select: "#view", swap: "outerMorph" }

// Shortcuts

const help = $("#help")
const keysOn = $("#keys-on")
const stored = () => { try { return localStorage.getItem("keys") !== "off" } catch { return true } }
keysOn.checked = stored()
keysOn.addEventListener("change", () => {
  try { localStorage.setItem("keys", keysOn.checked ? "on" : "off") } catch { /* for this page alone */ }
})
const helpButton = $("#help-button")
helpButton.hidden = false
helpButton.addEventListener("click", () => help.showModal())

const messages = () => $$("#messages .message[id]")
const here = () => document.activeElement.closest(".message[id]")

function move(step) {
  const all = messages()
  const next = all[Math.max(0, Math.min(all.length - 1, all.indexOf(here()) + step))]
  if (!next) return
  next.focus()
  next.scrollIntoView({ block: "nearest" })
}

function fold(thoughts) {
  const opens = thoughts.some((one) => !one.open)
  for (const one of thoughts) one.open = opens
}

const KEYS = {
  j: () => move(1),
  k: () => move(here() ? -1 : 1),
  t: () => fold($$(".thought", here() ?? $("#messages .message:has(.thought)") ?? document)),
  T: () => fold($$(".thought")),
  c: () => { const panel = $("#next"); panel?.focus(); panel?.scrollIntoView({ block: "nearest" }) },
  i: () => $("#c-includeInContext")?.click(),
  "/": () => { const box = $("#search"); if (box) box.focus(); else location.href = "/#search" },
  "?": () => help.showModal(),
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || help.open || !keysOn.checked) return
  if (event.target.closest("input:not([type=checkbox]):not([type=radio]), select, textarea")) return
  const act = KEYS[event.key]
  if (!act) return
  event.preventDefault()
  act()
})
if (location.hash === "#search") $("#search")?.focus()

// Replies that arrive

let source = null
let address = null

function reload() {
  return htmx.ajax("GET", location.pathname + location.search, SWAP)
}

function streaming() {
  const found = $("[data-streaming]")
  if (found) return found
  const made = document.createElement("article")
  made.className = "message assistant"
  made.dataset.streaming = ""
  made.innerHTML = '<h2>assistant <span class="badge live">arriving</span></h2><div class="parts"></div>'
  $("#messages").append(made)
  return made
}

function begin() {
  $(".parts", streaming()).replaceChildren()
  $("#live").textContent = "A reply is arriving."
}

function addPiece({ kind, text }) {
  const parts = $(".parts", streaming())
  let last = parts.lastElementChild
  if (last?.dataset.kind !== kind) {
    last = document.createElement(kind === "thought" ? "details" : "div")
    last.dataset.kind = kind
    last.className = kind === "thought" ? "thought" : "piece"
    if (kind === "thought") {
      last.open = true
      const summary = document.createElement("summary")
      summary.textContent = "Thinking, arriving"
      last.append(summary)
    }
    const box = document.createElement(kind === "call" ? "pre" : "div")
    box.className = "text"
    last.append(box)
    parts.append(last)
  }
  last.lastElementChild.append(text)
}

function listen() {
  const wanted = $("#view")?.dataset.live
  if (!wanted || wanted === address) return
  source?.close()
  address = wanted
  source = new EventSource(wanted)
  source.addEventListener("begin", begin)
  source.addEventListener("piece", (event) => addPiece(JSON.parse(event.data)))
  source.addEventListener("changed", async () => {
    source.close()
    address = null
    await reload()
    $("#live").textContent = "The conversation has changed."
    listen()
  })
}

document.addEventListener("htmx:after:swap", listen)
listen()
