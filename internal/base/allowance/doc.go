// Package allowance reads what a run may take, as people write it in commands, scripts and requests. An amount has
// one spelling in all of them, and nothing that is not one is taken.
package allowance
