// Package securetest gives tests an authority, certificates signed by it, and
// an end of TLS in front of a service that speaks none.
package securetest
