// Package address owns how the files of a script are named: plain paths,
// file:// URLs, and URLs of http, https, s3 and sftp. It takes names apart,
// finds names beside other names, and takes secrets out of names for messages,
// logs and state.
//
// It promises that Redact never makes a secret visible that it was given in a
// known place (a password, a query parameter whose name says so), and that
// Parse accepts nothing with which a transfer could not even begin. What can
// fail: names of other forms (fault.Script). It opens no file and no
// connection.
package address
