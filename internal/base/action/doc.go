// Package action holds what people can do next, as data: an Action is a verb with
// arguments, a Setting an option of what they did. Texts carry both as marks, which the
// edge that shows a text renders in its own way: the command line as a command or a
// flag, a page as a link or a button.
//
// It promises that a mark survives being stored, quoted in JSON and put together with
// other texts, whatever its values hold, and that text that only looks like a mark
// stays as it is. It cannot fail.
package action
