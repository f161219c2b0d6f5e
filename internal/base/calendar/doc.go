// Package calendar knows when: the moments of a cron expression in a time zone
// (Times), and when something that began is to be over (Deadline).
//
// It promises:
//
//   - Next is a function of the expression, the zone and the moment alone: who
//     asks again, or elsewhere, gets the same moments, each once, in order.
//   - Where a zone's clock is put forward or back, a time of day of its own is
//     neither left out nor there twice, and what goes by the clock's hands
//     (a * as minute or hour) goes on by the time that really passes: as cronie does it.
//   - Zones are known on machines that have no list of them.
//
// What can fail is the text of an expression, a zone or a deadline: *Error says
// where in it. The expressions are read by go-cron; nothing of it but that is used.
package calendar
