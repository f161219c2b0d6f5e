// Package clusterconfig reads cluster.yaml: which services a cluster has, and how a
// worker works. It only reads; who connects is package local.
//
// Texts may have {env.NAME}, which is the environment's value of that name, and
// passwords may lie in files of their own (password_file). Both, and passwords
// that are written out, are told to the filter of secrets before anything else
// is done with them.
//
// What is wrong is named with file, line and column, all of it at once
// (document.Diagnostics); unknown keys are errors. A file that cannot be read is a
// *fault.Error of kind Environment.
package clusterconfig
