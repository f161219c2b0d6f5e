package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/ops/doctor"
)

func TestFindingsAsPeopleReadThem(t *testing.T) {
	t.Parallel()
	found := []doctor.Finding{
		{Service: "machine", Check: "cores", Verdict: doctor.Good, Seen: "2"},
		{Service: "state", Check: "127.0.0.1:9042", Verdict: doctor.Good,
			Seen: "Cassandra 5.0.8, datacenter datacenter1, 2 ms a request"},
		{Service: "state", Check: "replication", Verdict: doctor.Bad,
			Seen: "3 copies: 2 nodes are needed for each request, and there are 1",
			Mend: "add nodes, or keep fewer copies"},
		{Service: "state", Check: "keyspace", Verdict: doctor.Skipped, Seen: "not looked at: see state, replication"},
		{Service: "state", Check: "tables", Verdict: doctor.Skipped, Seen: "not looked at: see state, replication"},
		{Service: "parts", Check: "reach", Verdict: doctor.Warning,
			Seen: "/a/path/that/has/no/blanks/in/it/and/is/longer/than/what/a/line/may/be/long", Mend: "a\x1b[31mb"},
	}
	var out bytes.Buffer
	a := &console{stdout: &out}
	a.printFindings(found)
	require.Equal(t, `machine  cores           good     2
state    127.0.0.1:9042  good     Cassandra 5.0.8, datacenter datacenter1, 2 ms
                                  a request
state    replication     bad      3 copies: 2 nodes are needed for each request,
                                  and there are 1
                                  mend: add nodes, or keep fewer copies
state    others          skipped  not looked at: see state, replication
parts    reach           warning  /a/path/that/has/no/blanks/in/it/and/is/longer
                                  /than/what/a/line/may/be/long
                                  mend: a␛[31mb
1 thing to mend, 1 warning
`, out.String())
	out.Reset()
	a.color, a.width = true, 60
	a.printFindings(found[:1])
	require.Equal(t, "machine  cores  \x1b[32mgood     \x1b[0m2\nall is good\n", out.String())
}
