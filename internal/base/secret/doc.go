// Package secret decides what of a text may be shown: everything that people,
// logs and the state see goes through it.
//
// It owns a run's knowledge of secrets (Known) and the rules by which they are
// found. A secret is the value of a declared environment secret (Add), or a value in a
// telling place of a command's texts and arguments (Learn). Such places are the
// password of an address, a parameter of its query such as token or X-Amz-Signature, and
// the value of a key such as password or api_key. A known secret is taken out of any
// text wherever it stands, also escaped for JSON, for a URL, in base64 or in
// hexadecimal. What is not known is found in addresses, well formed or mistyped, by
// package address. What is shown to people (Text) is held to pieces of secrets, too; what
// programs read again (Stored) is not, because names may be like them.
//
// It promises that Text never adds to what it was given, that it changes nothing
// else, and that a nil *Known knows no values but follows the rules. It cannot fail.
// Values shorter than minKnownBytes are not searched for: they occur in any text.
// A program's results (the rows of a query, a formatted script) do not go through it:
// they are the user's own.
package secret
