// Package chart draws lines of points as SVG: panels below each other, each with its axes and its series.
//
// It promises the same bytes for the same points, colours for light and dark, and a text for each point. What is not
// finite, or not above 0 on an axis of logarithms, is not drawn. Only writing can fail.
package chart
