// Package project reads what a project's file thalweg.yaml says of its environments,
// such as dev and prod: where state is, which parameters and flags count, which values the
// script's {env.NAME} have, and whether something may be replaced there without asking.
// Secrets come from variables or files and never stand in the file.
//
// It changes nothing: who asks for an environment puts it in force. What is wrong with the
// file are diagnostics with their places; a file that is not there or cannot be read, and an
// environment that it does not have, is a *fault.Error.
package project
