// The page of the chat: plain JavaScript, and the AI SDK's UI messages and their stream.

const $ = selector => document.querySelector(selector)
const make = (tag, fields = {}, ...children) => {
  const { dataset, style, ...rest } = fields
  const node = Object.assign(document.createElement(tag), rest)
  Object.assign(node.dataset, dataset)
  if (style) node.style.cssText = style
  node.append(...children.filter(child => child != null))
  return node
}
const answerOf = async response => {
  if (response.ok) return response
  const said = await response.json().catch(() => ({}))
  throw new Error(typeof said.detail === "string" ? said.detail : `The server answered ${response.status}.`)
}
const call = async (method, path, body) => {
  const response = await answerOf(await fetch(path, {
    method, headers: { "content-type": "application/json" }, body: body && JSON.stringify(body)
  }))
  return response.status === 204 ? null : response.json()
}
const number = value => value.toLocaleString("en")

// An element that is drawn anew keeps the focus.
const nameOf = node => [node.closest("[data-id]")?.dataset.id, node.id || node.ariaLabel || node.textContent].join()
const redraw = (place, ...nodes) => {
  const focus = place.contains(document.activeElement) && nameOf(document.activeElement)
  place.replaceChildren(...nodes.filter(node => node != null))
  if (focus) [...place.querySelectorAll("a, button, input, select, summary")].find(node => nameOf(node) === focus)?.focus()
}

let chat = null          // the id of the chat that is shown
let messages = []        // its UI messages, as the AI SDK has them
let facts = null         // what the server says about it
let reading = null       // ends the stream that is being read
let editing = null       // the id of the message that is being edited
let files = []           // the images that go with the next message, as the AI SDK's file parts
let panel = false        // whether the context is shown
const opened = new Set() // the thoughts that are unfolded

// The AI SDK's UI message stream: each event changes the message that is arriving

const change = (m, e, fields) => Object.assign(m.parts.find(part => part.toolCallId === e.toolCallId), fields)
const grow = {
  "start": (m, e) => { if (e.messageId) m.id = e.messageId },
  "start-step": m => m.parts.push({ type: "step-start" }),
  "message-metadata": (m, e) => Object.assign(m.metadata, e.messageMetadata),
  "tool-input-start": (m, e) => m.parts.push({ type: `tool-${e.toolName}`, toolCallId: e.toolCallId, state: "input-streaming" }),
  "tool-input-available": (m, e) => change(m, e, { state: "input-available", input: e.input }),
  "tool-input-error": (m, e) => change(m, e, { state: "output-error", errorText: e.errorText }),
  "tool-output-available": (m, e) => change(m, e, { state: "output-available", output: e.output }),
  "tool-output-error": (m, e) => change(m, e, { state: "output-error", errorText: e.errorText }),
  "file": (m, e) => m.parts.push(e),
  "abort": m => { m.metadata.status = "interrupted" },
  "error": (m, e) => { m.metadata.error = e.errorText },
}
for (const kind of ["text", "reasoning"]) {
  grow[`${kind}-start`] = (m, e) => m.parts.push({ type: kind, id: e.id, text: "", state: "streaming" })
  grow[`${kind}-delta`] = (m, e) => { m.parts.findLast(part => part.id === e.id).text += e.delta }
  grow[`${kind}-end`] = (m, e) => { m.parts.findLast(part => part.id === e.id).state = "done" }
}

const read = async response => {
  const message = { id: "arriving", role: "assistant", metadata: { status: "streaming" }, parts: [] }
  messages.push(message)
  let rest = ""
  for await (const piece of response.body.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + piece).split("\n\n")
    rest = lines.pop()
    for (const line of lines) {
      if (line === "data: [DONE]") continue
      const event = JSON.parse(line.slice(6))
      if (event.type === "start") list()
      grow[event.type]?.(message, event)
    }
    update(message)
  }
  return message
}

const stream = async (path, body) => {
  reading?.abort()
  const mine = reading = new AbortController(), shown = chat
  let error
  draw()
  try {
    const response = await answerOf(await fetch(path, {
      method: body ? "POST" : "GET", signal: mine.signal,
      headers: { "content-type": "application/json" }, body: body && JSON.stringify(body)
    }))
    if (response.status !== 204) error = (await read(response)).metadata.error
  } catch (reason) {
    if (mine.signal.aborted) return
    error = reason.message
  }
  reading = null
  if (chat === shown) await show(chat)
  if (error) complain(error)
}

// What a user does

const complain = error => $("#messages .column").append(make("p", { className: "error", textContent: error }))
const act = async work => {
  try { await work() } catch (reason) { complain(reason.message) }
}
const send = (parts, edited) => {
  const message = { id: edited ?? crypto.randomUUID(), role: "user", metadata: {}, parts }
  const place = messages.findIndex(one => one.id === edited)
  const after = edited ? undefined : messages.at(-1)?.metadata.messages?.at(-1)?.id
  messages = [...messages.slice(0, edited ? place : undefined), message]
  editing = null
  if (!chat) {
    chat = crypto.randomUUID()
    history.pushState(null, "", `#${chat}`)
  }
  stream("/api/chat", { id: chat, messages: [message], trigger: "submit-message", messageId: edited, after, model: $("#model").value || undefined })
}
const text = words => ({ type: "text", text: words })
const regenerate = id => {
  messages = messages.slice(0, messages.findIndex(one => one.id === id))
  stream("/api/chat", { id: chat, trigger: "regenerate-message", messageId: id, model: $("#model").value || undefined })
}
const ask = (method, path, body) => act(async () => {
  await call(method, `/api/chats/${chat}${path}`, body)
  await show(chat)
})
const set = changes => ask("PATCH", "", changes)
const shorten = event => {
  event.target.disabled = true
  ask("POST", "/compactions")
}
const attach = async picked => {
  for (const file of picked) {
    if (file.size > 4_000_000) { complain(`${file.name} is larger than 4 MB.`); continue }
    const url = await new Promise(done => Object.assign(new FileReader(), { onload: event => done(event.target.result) }).readAsDataURL(file))
    files.push({ type: "file", mediaType: file.type, filename: file.name, url })
  }
  drawFiles()
}

// A conversation

const show = async id => {
  chat = id
  const loaded = id && await call("GET", `/api/chats/${id}`).catch(() => null)
  if (chat !== id) return
  facts = loaded
  messages = loaded?.messages ?? []
  if (loaded) $("#model").value = loaded.model
  draw()
  list()
  if (loaded?.live && !reading) stream(`/api/chat/${id}/stream`)
}

const draw = () => {
  const section = $("#messages"), column = section.firstElementChild
  const atEnd = section.scrollHeight - section.scrollTop - section.clientHeight < 80
  redraw(column, ...messages.length ? messages.flatMap(message => [article(message), ...folds(message)]) : [welcome()])
  if (reading && messages.at(-1)?.role !== "assistant") column.append(folded("wait", "Thinking\u2026", "", true))
  $("#title").textContent = facts?.title ?? messages[0]?.parts.find(part => part.text)?.text ?? "New chat"
  $("#title").disabled = !facts
  $("#go").textContent = reading ? "\u25A0" : "\u2191"
  $("#go").ariaLabel = reading ? "Stop" : "Send"
  drawContext()
  if (atEnd) section.scrollTop = section.scrollHeight
}

// A reply that arrives changes its nodes in place, so that what is clicked stays there.

const update = message => {
  const section = $("#messages"), node = section.firstElementChild.lastElementChild
  if (node?.dataset.id !== message.id) return draw()
  const atEnd = section.scrollHeight - section.scrollTop - section.clientHeight < 80
  message.parts.forEach((part, at) => {
    const now = shown(part, `${message.id}.${at}`, message.metadata), old = node.children[at]
    if (!old) node.append(now)
    else if (old.tagName === "DETAILS") {
      old.className = now.className
      old.children[0].textContent = now.children[0].textContent
      old.children[1].textContent = now.children[1].textContent
    } else if (old.innerHTML !== now.innerHTML) old.innerHTML = now.innerHTML
  })
  if (atEnd) section.scrollTop = section.scrollHeight
}

const welcome = () => make("div", { className: "empty" },
  make("h2", { textContent: "What would you like to know?" }),
  make("p", { textContent: "The model thinks before it answers. You choose what it gets to see again." }),
  ...["Is 91 a prime number?", "How is the weather in Oslo?", "Tell me a story"].map(words =>
    make("button", { textContent: words, onclick: () => send([text(words)]) })))

const article = message => {
  const { metadata, role } = message
  const parts = role === "user" ? asked(message) : message.parts.map((part, at) => shown(part, `${message.id}.${at}`, metadata))
  const node = make("article", { className: role, dataset: { id: message.id } }, ...parts)
  for (const note of metadata.annotations?.notes ?? [])
    if (!before(message)?.metadata.annotations?.notes?.includes(note)) node.append(make("div", { className: "note", textContent: note }))
  if (role === "assistant" && metadata.status === "interrupted")
    node.append(make("div", { className: "note", textContent: metadata.finishReason === "error" ? "The model did not answer" : "Stopped" }))
  if (!reading && editing !== message.id) node.append(tools(message))
  return node
}

const before = message => messages.slice(0, messages.indexOf(message)).findLast(one => one.role === "assistant")

const asked = message => {
  const attached = message.parts.filter(part => part.type === "file")
  const words = message.parts.map(part => part.text ?? "").join("")
  const shownFiles = attached.map(part => shown(part, "", {}))
  if (editing !== message.id) return [...shownFiles, ...words ? [make("div", { className: "bubble", textContent: words })] : []]
  const cancel = () => { editing = null; draw() }
  const area = make("textarea", { value: words, ariaLabel: "Edit message", onkeydown: event => { if (event.key === "Escape") cancel() } })
  setTimeout(() => area.focus())
  return [...shownFiles, make("form", { className: "edit", onsubmit: event => { event.preventDefault(); send([...attached, text(area.value)], message.id) } },
    area, make("div", {}, make("button", { type: "button", textContent: "Cancel", onclick: cancel }), make("button", { textContent: "Send" })))]
}

const shown = (part, key, { secondsThought }) => {
  if (part.type === "reasoning") {
    const busy = part.state === "streaming"
    return folded(key, busy ? "Thinking\u2026" : secondsThought >= 1 ? `Thought for ${Math.round(secondsThought)} s` : "Thought", part.text, busy)
  }
  if (part.type.startsWith("tool-")) {
    const busy = part.state.startsWith("input"), result = part.errorText ?? part.output
    const inside = `${JSON.stringify(part.input ?? {}, null, 1)}\n${result === undefined ? "" : `\u2192 ${typeof result === "string" ? result : JSON.stringify(result)}`}`
    return folded(key, `${busy ? "Using" : "Used"} ${part.type.slice(5)}`, inside, busy)
  }
  if (part.type === "text") return make("div", { className: "text", innerHTML: markdown(part.text) })
  if (part.type === "file" && part.mediaType.startsWith("image/")) return make("img", { src: part.url, alt: part.filename ?? "An image" })
  if (part.type === "file") return make("a", { href: part.url, download: part.filename ?? "", textContent: part.filename ?? part.mediaType })
  return make("span", { hidden: true })
}

const folded = (key, title, words, busy) => make("details", {
  className: busy ? "busy" : "", open: opened.has(key),
  ontoggle: event => opened[event.target.open ? "add" : "delete"](key),
}, make("summary", { textContent: title }), make("div", { className: "inside", textContent: words }))

const tools = message => {
  const { versions = [] } = message.metadata, at = versions.findIndex(version => version.isShown)
  const arrow = (sign, to, label) => make("button", { textContent: sign, ariaLabel: label, disabled: to === undefined, onclick: () => set({ branch: to }) })
  return make("div", { className: versions.length ? "tools versions" : "tools" },
    ...versions.length ? [arrow("\u2039", versions[at - 1]?.branch, "Previous version"),
      make("span", { className: "version", textContent: `${at + 1}/${versions.length}` }), arrow("\u203A", versions[at + 1]?.branch, "Next version")] : [],
    message.role === "user"
      ? make("button", { textContent: "Edit", onclick: () => { editing = message.id; draw() } })
      : make("button", { textContent: "Regenerate", onclick: () => regenerate(message.id) }),
    ...message.role === "user" ? [] : [rate(message, 1, "Good"), rate(message, -1, "Bad")])
}

const rate = (message, rating, label) => {
  const on = message.metadata.annotations?.rating === rating
  return make("button", { textContent: label, ariaPressed: on, className: "rate",
    onclick: () => ask("PUT", `/messages/${message.id}`, { rating: on ? null : rating }) })
}

// A summary is shown after the last message that it stands for.

const folds = message => (facts?.compactions ?? [])
  .filter(one => message.metadata.messages?.some(stored => stored.position === one.last))
  .map(one => make("div", { className: "fold" },
    one.summary === null
      ? make("span", { className: "note", textContent: "Tool results above are not sent any more" })
      : folded(`summary.${one.id}`, "A summary is sent instead of the messages above", one.summary),
    make("button", { textContent: "Undo", onclick: () => ask("DELETE", `/compactions/${one.id}`) })))

// The context: what the model gets to see, by kind, against its limit

const LEFT_OUT = { none: "nothing", priorTurns: "earlier turns", allButLast: "all but the last", all: "all thinking" }
const KINDS = ["system", "tools", "messages", "thinking"]

const drawContext = () => {
  const { used, limit, kinds, shorter } = facts?.context ?? {}, round = 2 * Math.PI * 9
  redraw($("#notice"), ...shorter == null || reading ? [] : [
    make("span", { textContent: `This chat fills ${Math.round(100 * used / limit)} % of the model's context.` }),
    make("button", { textContent: `Make it shorter: about ${number(shorter)} tokens`, onclick: shorten })])
  if (!facts) return $("#ring").replaceChildren()
  let before = 0
  const arcs = KINDS.map(kind => {
    const part = kinds[kind] / limit * round
    const arc = `<circle r="9" cx="12" cy="12" stroke="var(--${kind})" stroke-dasharray="${part} ${round}" stroke-dashoffset="${-before}"/>`
    before += part
    return arc
  })
  const drawing = `<svg width="24" height="24" fill="none" stroke-width="4" style="rotate:-90deg" aria-hidden="true"><circle r="9" cx="12" cy="12" stroke="var(--line)"/>${arcs.join("")}</svg>`
  const button = make("button", { id: "context", innerHTML: drawing, ariaLabel: `Context: ${number(used)} of ${number(limit)} tokens`, ariaExpanded: panel, onclick: () => { panel = !panel; drawContext() } },
    make("span", { textContent: `${number(used)} / ${number(limit)}` }))
  redraw($("#ring"), button, panel ? contextPanel() : null)
}

const contextPanel = () => {
  const { context: { used, limit, kinds, choices }, model, settings } = facts
  const include = settings["reasoning.includeInContext"], strip = settings["reasoning.stripFromContext"]
  const tokens = name => choices.find(row => row.include === include && row.strip === name)?.tokens
  const box = make("input", { type: "checkbox", id: "include", checked: include, onchange: () => set({ settings: { "reasoning.includeInContext": box.checked } }) })
  const select = make("select", { id: "strip", onchange: () => set({ settings: { "reasoning.stripFromContext": select.value } }) },
    ...Object.entries(LEFT_OUT).map(([name, words]) => make("option", { value: name, textContent: `${words} \u00b7 ${number(tokens(name))}`, selected: name === strip })))
  return make("div", { id: "panel" }, make("h3", { textContent: `${model}: ${Math.round(100 * used / limit)} % of its context` }),
    make("div", { className: "bar" }, ...KINDS.map(kind => make("span", { style: `width:${100 * kinds[kind] / limit}%;background:var(--${kind})` }))),
    make("dl", {}, ...[...KINDS, "withheld"].flatMap(kind => [make("i", { style: `background:var(--${kind})` }),
      make("dt", { textContent: kind === "withheld" ? "thinking left out" : kind }), make("dd", { dataset: { kind }, textContent: number(kinds[kind]) })])),
    make("label", { textContent: "Send thinking again" }, box), make("label", { textContent: "Leave out" }, select),
    make("p", { textContent: "All thinking is stored. These choices hold from the next message on. " },
      make("a", { href: `/api/chats/${chat}/request`, target: "_blank", textContent: "Next request" })))
}

// The list, and the search in it

let asking = 0
const list = async after => {
  const mine = ++asking, words = $("#search").value.trim(), archived = $("#archived").checked
  const query = new URLSearchParams({ ...words ? { q: words } : { archived }, ...after ? { after } : {} })
  const { items, next } = await call("GET", `/api/${words ? "search" : "chats"}?${query}`)
  if (mine !== asking) return
  const rows = items.map(one => make("li", { className: one.id === chat ? "on" : "", dataset: { id: one.id } },
    make("a", { href: `#${one.id}` }, make("span", { textContent: one.title ?? "New chat" }), make("small", { textContent: (one.preview ?? "").replace(/[*`#]/g, "") })),
    words ? null : make("button", { textContent: archived ? "\u2191" : "\u2193", title: archived ? "Restore" : "Archive", ariaLabel: `${archived ? "Restore" : "Archive"} ${one.title}`, onclick: async () => {
      await call("PATCH", `/api/chats/${one.id}`, { archived: !archived })
      list()
    } }),
    make("button", { textContent: "\u00d7", title: "Delete", ariaLabel: `Delete ${one.title}`, onclick: async () => {
      if (!confirm(`Delete "${one.title}"?`)) return
      await call("DELETE", `/api/chats/${one.id}`)
      if (one.id === chat) location.hash = ""
      list()
    } })))
  if (next) rows.push(make("li", {}, make("button", { className: "more", textContent: "More", onclick: () => list(next) })))
  const before = after ? [...$("#list").children].slice(0, -1) : []
  redraw($("#list"), ...before, ...rows)
}

// What the user has used, and all that is stored

const account = async () => {
  const { rows, thinking } = await call("GET", "/api/usage"), dialog = $("#data")
  const spent = rows.reduce((sum, row) => sum + (row.dollars ?? 0), 0)
  const dollars = value => value === null ? "\u2013" : `$${value.toFixed(5)}`
  const picker = make("input", { type: "file", accept: ".jsonl", hidden: true, onchange: async () => {
    try {
      const done = await (await answerOf(await fetch("/api/import", { method: "POST", body: picker.files[0] }))).json()
      said.textContent = `${done.sessions} conversations, ${done.messages} new messages`
      list()
    } catch (reason) { said.textContent = reason.message }
  } })
  const said = make("p", { role: "status" })
  dialog.replaceChildren(make("h3", { textContent: "Usage and data" }),
    make("div", { className: "scroll" }, make("table", {},
      make("tr", {}, ...["Day", "Model", "Input", "Cached", "Output", "Thinking", "Price"].map(textContent => make("th", { textContent }))),
      ...rows.map(row => make("tr", {}, ...[row.day, row.model, ...[row.input, row.cached, row.output, row.reasoning + row.counted].map(number), dollars(row.dollars)]
        .map(textContent => make("td", { textContent })))))),
    make("p", { id: "budget", textContent: `${dollars(spent)} in all. Today you have used ${number(thinking.used)} of ${number(thinking.limit)} tokens of thinking.` }),
    make("div", { className: "row" },
      facts && make("a", { href: `/api/chats/${chat}/markdown`, download: "", textContent: "Download this chat" }),
      make("a", { href: "/api/export", download: "", textContent: "Download all" }),
      make("button", { textContent: "Restore", onclick: () => picker.click() }), picker,
      make("button", { className: "error", textContent: "Erase all", onclick: async () => {
        if (!confirm("Erase all of your conversations? They cannot be restored.")) return
        const { sessions, copies } = await call("DELETE", "/api/chats")
        said.textContent = [`${sessions} conversations are erased.`, ...copies].join(" ")
        location.hash = ""
        list()
      } }),
      make("button", { textContent: "Close", onclick: () => dialog.close() })), said)
  if (!dialog.open) dialog.showModal()
}

// Enough Markdown for answers: everything is escaped first.

const markdown = words => {
  const safe = words.replace(/[&<>"]/g, sign => `&#${sign.charCodeAt()};`)
  const inline = line => line.replace(/`([^`]+)`/g, "<code>$1</code>").replace(/\*\*([^*]+)\*\*/g, "<b>$1</b>")
    .replace(/(^|[\s(])\*([^*\s][^*]*)\*/g, "$1<i>$2</i>").replace(/\[([^\]]+)\]\((https?:[^\s)]+)\)/g, '<a href="$2" rel="noreferrer">$1</a>')
  const items = (lines, mark, tag) => lines.every(line => mark.test(line)) && `<${tag}>${lines.map(line => `<li>${inline(line.replace(mark, ""))}</li>`).join("")}</${tag}>`
  return safe.split(/(```[\s\S]*?(?:```|$))/).map(block => {
    if (block.startsWith("```")) return `<pre><code>${block.replace(/^```\w*\n?|```$/g, "")}</code></pre>`
    return block.replace(/^(#+ .*)\n?/gm, "\n\n$1\n\n").split(/\n{2,}/).filter(part => part.trim()).map(part => {
      const lines = part.trim().split("\n")
      if (/^#+ /.test(lines[0])) return `<h3>${inline(lines[0].replace(/^#+ /, ""))}</h3>`
      return items(lines, /^[-*] /, "ul") || items(lines, /^\d+[.)] /, "ol") || `<p>${inline(lines.join("<br>"))}</p>`
    }).join("")
  }).join("")
}

const area = $("#send textarea")
const drawFiles = () => redraw($("#files"), ...files.map(file =>
  make("button", { type: "button", ariaLabel: `Remove ${file.filename}`, onclick: () => { files = files.filter(one => one !== file); drawFiles(); area.focus() } },
    make("img", { src: file.url, alt: "" }))))
$("#send").onsubmit = event => {
  event.preventDefault()
  if (reading) return act(() => call("POST", `/api/chat/${chat}/stop`))
  const words = area.value.trim()
  if (words || files.length) send([...files, ...words ? [text(words)] : []])
  area.value = ""
  files = []
  drawFiles()
}
area.onkeydown = event => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); if (!reading) $("#send").requestSubmit() }
}
area.onpaste = event => { if (event.clipboardData.files.length) { event.preventDefault(); attach(event.clipboardData.files) } }
$("#attach").onclick = () => $("#picker").click()
$("#picker").onchange = event => attach([...event.target.files]).then(() => { event.target.value = ""; area.focus() })
$("#model").onchange = event => { if (chat) set({ model: event.target.value }) }
$("#search").oninput = $("#archived").onchange = () => list()
$("#title").onclick = () => {
  const title = prompt("Title", facts.title ?? "")?.trim()
  if (title) set({ title })
}
const menu = open => { document.body.classList.toggle("menu", open); $("#menu").ariaExpanded = open }
$("#menu").onclick = event => { event.stopPropagation(); menu(true); $("#new").focus() }
$("main").onclick = () => menu(false)
$("#new").onclick = () => { location.hash = ""; menu(false); area.focus() }
$("#account").onclick = () => act(account)
document.onkeydown = event => {
  if (event.key !== "Escape") return
  if (document.body.classList.contains("menu")) { menu(false); $("#menu").focus() }
  if (panel) { panel = false; drawContext() }
}
window.onhashchange = () => { menu(false); reading?.abort(); reading = null; editing = null; show(location.hash.slice(1) || null) }

call("GET", "/api/models").then(models => {
  $("#model").append(...models.map(model => make("option", { textContent: model })))
  if (facts) $("#model").value = facts.model
})
show(location.hash.slice(1) || null)
