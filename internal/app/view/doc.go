// Package view holds the shapes in which people and programs see what Thalweg
// knows: what --json prints, what an API answers, what a page reads. A field
// that is here keeps its name and meaning; new ones are added.
//
// It holds data only, and cannot fail.
package view
