// Package access knows who may do what: users, their grants, tokens and sessions, and
// the log of who came in and what they saw. It knows nothing of HTTP.
//
// It promises:
//   - Passwords are kept as argon2id, tokens and sessions as SHA-256 of 256 random bits. What
//     a store has lets nobody in.
//   - A token never allows more than its owner may at that moment.
//   - What is revoked is refused by all processes within RevokedWithin.
//   - Trying passwords is slow, and as slow for users who do not exist.
//
// What can fail: the store; then nobody comes in. Wrong credentials are ErrUnauthorized,
// without a reason.
package access
