package tui

import (
	"slices"

	"charm.land/bubbles/v2/key"
)

// act is what a key does on the dashboard.
type act string

// The acts. Each is one key's, and help.go explains them all from this table.
const (
	actUp       act = "up"
	actDown     act = "down"
	actTop      act = "top"
	actBottom   act = "bottom"
	actPane     act = "pane"
	actNew      act = "new"
	actCopy     act = "copy"
	actExtend   act = "extend"
	actRevoke   act = "revoke"
	actKick     act = "kick"
	actApprove  act = "approve"
	actWatch    act = "watch"
	actFilter   act = "filter"
	actSort     act = "sort"
	actReceipts act = "receipts"
	actUsage    act = "usage"
	actEnded    act = "ended"
	actHelp     act = "help"
	actSuspend  act = "suspend"
	actQuit     act = "quit"
)

// binding is a key, what it does and what the help says of it.
type binding struct {
	key.Binding
	act   act
	group string
	short string // for the bottom line; empty: not there
}

func bind(a act, group, short, help string, shown string, keys ...string) binding {
	return binding{key.NewBinding(key.WithKeys(keys...), key.WithHelp(shown, help)), a, group, short}
}

// keyMap is the one table of keys: the dashboard obeys it, help and docs/keys.md print it.
func keyMap() []binding {
	return []binding{
		bind(actNew, "Links", "new", "make a link", "n", "n"),
		bind(actCopy, "Links", "", "copy the link's id", "c", "c"),
		bind(actExtend, "Links", "extend", "give the link more time", "e", "e"),
		bind(actApprove, "Links", "approve", "let the guest in who waits", "a", "a"),
		bind(actKick, "Links", "kick", "close the connection, or all of the link's; the link stays", "x", "x"),
		bind(actRevoke, "Links", "revoke", "end the link; its container and files go", "r", "r", "delete"),
		bind(actWatch, "Links", "watch", "see the guest's terminal on the whole screen", "enter, w", "enter", "w"),
		bind(actUp, "Move", "", "up", "↑, k", "up", "k"),
		bind(actDown, "Move", "", "down", "↓, j", "down", "j"),
		bind(actTop, "Move", "", "first", "home, g", "home", "g"),
		bind(actBottom, "Move", "", "last", "end, G", "end", "G"),
		bind(actPane, "Move", "", "between links and sessions", "tab", "tab", "shift+tab", "left", "right"),
		bind(actFilter, "Lists", "filter", "show the links that contain a text", "/", "/"),
		bind(actSort, "Lists", "", "sort links by age, name, time left, bytes", "s", "s"),
		bind(actEnded, "Lists", "", "show or hide links that have ended", "o", "o"),
		bind(actReceipts, "Lists", "", "what was cleaned after each link", "R", "R"),
		bind(actUsage, "Lists", "", "time and bytes of each link", "u", "u"),
		bind(actHelp, "Screen", "help", "every key", "?", "?"),
		bind(actSuspend, "Screen", "", "suspend; `fg` comes back", "ctrl+z", "ctrl+z"),
		bind(actQuit, "Screen", "quit", "leave", "q, ctrl+c", "q", "ctrl+c"),
	}
}

// actFor returns what the key does.
func actFor(keys []binding, pressed string) act {
	for _, b := range keys {
		if slices.Contains(b.Keys(), pressed) {
			return b.act
		}
	}
	return ""
}
