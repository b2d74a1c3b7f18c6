// SPDX-License-Identifier: Apache-2.0
// Keys of the console. Every page works without this file. It writes text only, and no HTML.

const all = (selector, within = document) => [...within.querySelectorAll(selector)]
const one = (selector, within = document) => within.querySelector(selector)
const say = text => { const at = one('[data-says]'); if (at && at.textContent !== text) at.textContent = text }

// Letters can be switched off (WCAG 2.1.4); the choice stays in this browser.
const lettersOff = 'pellucid-letters-off'
const stored = { get: () => { try { return localStorage.getItem(lettersOff) === '1' } catch { return false } }, set: off => { try { localStorage.setItem(lettersOff, off ? '1' : '0') } catch { /* the choice holds for this page only */ } } }
let off = stored.get()

// What only works with this file is hidden until it has come.
for (const el of all('[data-script]')) el.hidden = false

const inField = el => el instanceof Element && !!el.closest('input:not([type=checkbox]):not([type=radio]):not([type=submit]), textarea, select, [contenteditable]')
const shown = el => el && !el.disabled && el.getClientRects().length > 0

// Rows of a list: j and k move, and what a letter does happens in the row.
const rows = () => all('[data-row]').filter(shown)
const here = () => one('[data-row].here')
function move(by) {
	const list = rows()
	if (!list.length) return
	const at = list.indexOf(here())
	const next = list[Math.max(0, Math.min(list.length - 1, at < 0 ? (by > 0 ? 0 : list.length - 1) : at + by))]
	for (const row of list) row.classList.toggle('here', row === next)
	const to = one('[data-open]', next) || next
	to.focus({ preventScroll: true })
	next.scrollIntoView({ block: 'nearest' })
	disarm()
}

// A button with data-twice acts at the second press of its key; the first says what will happen.
let armed = null
function disarm() {
	if (!armed) return
	armed.classList.remove('armed')
	armed = null
	say('')
}
function press(el) {
	if (el.dataset.twice !== undefined && armed !== el) {
		disarm()
		armed = el
		el.classList.add('armed')
		say((el.dataset.twice || el.textContent.trim()) + ' Press ' + el.dataset.key + ' again to do it, Esc to leave it.')
		el.focus({ preventScroll: true })
		return
	}
	disarm()
	if (el.matches('input:not([type=checkbox]), textarea, select')) el.focus()
	else el.click()
}

const buttonOf = key => all(`[data-key="${CSS.escape(key)}"]`, here() || document).filter(el => !el.closest('.nav') && shown(el))[0]
	|| all(`[data-key="${CSS.escape(key)}"]`).filter(el => !el.closest('.nav') && !el.closest('[data-row]') && shown(el))[0]

let going = 0 // until when a letter behind g names a page
function key(ev) {
	if (ev.defaultPrevented || ev.ctrlKey || ev.metaKey || ev.altKey || ev.isComposing) return
	const dialog = one('dialog[open]')
	if (ev.key === 'Escape') {
		if (dialog) return // it closes itself
		if (inField(ev.target)) ev.target.blur()
		disarm()
		return
	}
	if (off || dialog || inField(ev.target)) return
	if (going > Date.now()) {
		going = 0
		const to = all('.nav [data-key]').find(a => a.dataset.key === ev.key)
		if (to) { ev.preventDefault(); to.click() }
		return
	}
	const find = one('#find')
	switch (ev.key) {
	case 'j': case 'k': // rows of a list, or the items before and behind that of the page
		if (rows().length) move(ev.key === 'j' ? 1 : -1)
		else { const to = buttonOf(ev.key); if (!to) return; press(to) }
		break
	case 'g': going = Date.now() + 1500; break
	case 'u': { const up = one('[data-up]'); if (!up) return; up.click(); break }
	case '/': if (!find) return; find.focus(); break
	case '?': one('#keys')?.showModal(); break
	case 'Enter': {
		const open = here() && document.activeElement === here() && one('[data-open]', here())
		if (!open) return
		open.click()
		break
	}
	default: {
		if (ev.key.length !== 1 || ev.key === ' ') return
		const el = buttonOf(ev.shiftKey ? 'Shift ' + ev.key.toLowerCase() : ev.key)
		if (!el) return
		press(el)
	}
	}
	ev.preventDefault()
}
document.addEventListener('keydown', key)
document.addEventListener('pointerdown', disarm)

document.addEventListener('click', ev => {
	if (ev.target instanceof Element && ev.target.closest('[data-keys]')) one('#keys')?.showModal()
})

const letters = one('#letters')
if (letters) {
	letters.checked = !off
	letters.addEventListener('change', () => { off = !letters.checked; stored.set(off) })
}
document.documentElement.classList.toggle('no-letters', off)
letters?.addEventListener('change', () => document.documentElement.classList.toggle('no-letters', off))

