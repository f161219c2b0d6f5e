// Package message is what people and programs are told of a run: the events
// that there are, the record that a hook is given of one (Message, which is
// versioned), and the forms in which chats want it (Form).
//
// It promises that a form never gives more than FormBytesMax. It also promises that a run's texts, which may quote
// anything in a file, cannot become markup of a chat or break out of a JSON text. For that Slack's characters are
// escaped, Teams gets runs of plain text, and templates of one's own have functions.
//
// What can fail is a template of one's own: when it is parsed or when it is
// carried out. Nothing here knows of addresses, secrets or state.
package message
