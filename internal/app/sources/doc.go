// Package sources finds and reads the sources of scripts: files of this machine
// and of others, parameters, the headers of input files, tables of databases.
//
// It fails with InvalidScriptError for a script that cannot be loaded, and with
// *fault.Error for an address that cannot be one.
package sources
