package hostile

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/store/state"
)

// Whoever adds a field to what a partition has is to say here whether an answer
// may depend on it. If so, fork and append have to know it: else states that are
// not alike are taken for one by whoever explores them, and nobody sees what
// follows from the other.
func TestSnapshotsKnowEveryField(t *testing.T) {
	for _, tc := range []struct {
		of any
		// In the states that are compared, and not: because nothing is conditional on
		// it, or it never changes, or follows from the rest.
		in, out string
	}{
		{Store{}, "runs nodes", "mu workspaces blobs"},
		{runPartition{}, "run", "Mutex nodes roles events spans"},
		{nodePartition{}, "node plan batches attempts publications purged", "Mutex staged events"},
		{stagedPlan{}, "", "batches inputs"}, // the digest says them
		{batch{}, "Batch token", ""},
		{attempt{}, "Attempt out", ""},
		{state.Run{}, "Status Epoch Command Invalidated Dropped Limit", `RunKey Token Script ScriptPath ParamsPath
			Fingerprint StartNodes Sources Description Actor Parent Deadline Created Finished Failure Program Engine
			BucketHash Pins Nodes Priority`},
		{state.Command{}, "Token Kind From Nodes Limit Done", "Epoch Mark Cause Left"}, // its number is the run's
		{state.Limit{}, "Elapsed Cost Foreseen", "PerHour PerSlotHour Expected ExpectedElapsed"},
		{state.CommandNode{}, "Node Batches Replan Digest", "Role RoleVerified Answers"},
		{state.Node{}, "Status Epoch Fence Generation Gate GateDigest Decision Dropped Failure PlanDigest",
			`NodeKey NodeSpec ReusedFrom InputDigest Started Finished
			Plan BatchesTotal BatchesDone BatchesFailed RowsIn RowsOut BytesIn BytesOut Spent Revision`},
		{state.NodeSpec{}, "", "Name Kind Table Ordinal Inputs Fingerprint"},
		{state.Decision{}, "Approved Digest", "Mark Role RoleVerified Answers Token"},
		{state.Batch{}, "Status Attempt Epoch Tries NotBefore Owner Lease",
			"BatchKey BatchSpec Started Finished Stats Failure"},
		{state.Attempt{}, "Epoch Generation Owner Status", "BatchKey Attempt Withdrawn Started Finished Failure Stats"},
		{state.Outcome{}, "Parts", "Files Checks Stats"},
		{state.Publication{}, "BatchKey Attempt Seq Address", "Owner Temp Upload Begun"},
	} {
		var fields []string
		for f := range reflect.TypeOf(tc.of).Fields() {
			fields = append(fields, f.Name)
		}
		require.ElementsMatch(t, strings.Fields(tc.in+" "+tc.out), fields, "fields of %T: see snapshot.go", tc.of)
	}
}
