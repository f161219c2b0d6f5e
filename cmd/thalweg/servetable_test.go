package main

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"regexp"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// cmdAsk sends commands to the server of a table whose standard error is a file, and prints its answers as they come:
// ask [-tls CERTIFICATE] LOG COMMAND…, each command a line.
func cmdAsk(ts *testscript.TestScript, neg bool, args []string) {
	pattern, certificate := `listening at (\S+)\n`, ""
	if len(args) > 1 && args[0] == "-tls" {
		pattern, certificate, args = `listening at (\S+), with TLS\n`, ts.ReadFile(args[1]), args[2:]
	}
	if neg || len(args) < 2 {
		ts.Fatalf("usage: ask [-tls CERTIFICATE] LOG COMMAND…")
	}
	cmdWaitfile(ts, false, []string{args[0], pattern})
	address := regexp.MustCompile(pattern).FindStringSubmatch(ts.ReadFile(args[0]))[1]
	c, err := net.Dial("tcp", address)
	ts.Check(err)
	if certificate != "" {
		trusted := x509.NewCertPool()
		trusted.AppendCertsFromPEM([]byte(certificate))
		c = tls.Client(c, &tls.Config{RootCAs: trusted, ServerName: "localhost"})
	}
	defer c.Close()
	_, err = io.WriteString(c, strings.Join(args[1:], "\r\n")+"\r\nQUIT\r\n")
	ts.Check(err)
	got, err := io.ReadAll(c)
	ts.Check(err)
	_, err = io.WriteString(ts.Stdout(), strings.ReplaceAll(string(got), "\r\n", "\n"))
	ts.Check(err)
}
