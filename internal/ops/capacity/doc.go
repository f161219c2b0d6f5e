// Package capacity says from measured runs of several deployments what a run takes on another one, what that costs, and
// which deployment is the cheapest in time. It has the published studies' figures, and reproduces their tables.
//
// It promises that errors are always those of deployments that the fit has not seen (LeftOut), and that intervals hold
// about 80 % of them. Times become money by the prices of package price alone. No part of a model of times is below 0.
//
// What can fail: a table that cannot be read, with its line and column; a fit for which there are too few deployments,
// or that they do not tell apart. It measures nothing, and takes no speed of a machine from its name.
package capacity
