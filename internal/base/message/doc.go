// Package message is what people and programs are told of a run: the events
// that there are, the record that a hook is given of one (Message, which is
// versioned), and the forms in which chats want it (Form).
//
// It promises that a form never gives more than FormBytesMax, and that what a
// run says (a failure may quote anything that was in a file) cannot become
// markup of a chat or break out of a JSON text: Slack's characters are escaped,
// Teams gets runs of plain text, and templates of one's own have functions for it.
//
// What can fail is a template of one's own: when it is parsed or when it is
// carried out. Nothing here knows of addresses, secrets or state.
package message
