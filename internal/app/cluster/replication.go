package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"thalweg/internal/app/instance"
	"thalweg/internal/ops/clusterconfig"
	"thalweg/internal/ops/doctor"
	"thalweg/internal/store/cassandra"
)

// inDatacenter refuses a datacenter that has no nodes.
func inDatacenter(c *clusterconfig.Config, there map[string]int) error {
	name := c.State.Cassandra.Datacenter
	if name == "" || there[name] > 0 || len(there) == 0 {
		return nil
	}
	r := doctor.JudgeDatacenter(name, there)
	return instance.Wrong(c, r.Seen, r.Mend, nil, "state.cassandra.datacenter")
}

// WrongDatacenter says that the configuration names a datacenter without nodes, as far as
// nodes know of each other: runs go on without it, with nodes that may be far away.
func WrongDatacenter(h *instance.Instance) error {
	if h.Cassandra == nil {
		return nil
	}
	return inDatacenter(h.ClusterConfig, h.Cassandra.Datacenters())
}

const replicationKey = "state.cassandra.replication"

// enoughNodes refuses to ask for more copies than there are nodes.
func enoughNodes(c *clusterconfig.Config, asked, there map[string]int) error {
	k, all := c.State.Cassandra, 0
	for _, n := range there {
		all += n
	}
	for _, dc := range slices.Sorted(maps.Keys(asked)) {
		copies, nodes, where, write := asked[dc], there[dc], " in datacenter "+dc, dc+": %d"
		key := replicationKey + "." + dc
		switch {
		case dc == "":
			nodes, where, write, key = all, "", "replication: %d", replicationKey
		case nodes == 0:
			r := doctor.JudgeDatacenter(dc, there)
			return instance.Wrong(c, r.Seen, r.Mend, nil, key)
		case k.Replication[dc] == 0: // a plain number
			write = "copies by datacenter, as replication: {" + write + "}"
		case dc == k.Datacenter && len(asked) == 1:
			write = "replication: {" + write + "}"
		}
		if copies > nodes {
			return instance.Wrong(c, fmt.Sprintf("%s of each row are asked for%s, and there %s",
				doctor.CopiesText(map[string]int{"": copies}), where,
				nodesText(nodes)),
				"write "+fmt.Sprintf(write, nodes)+", or start more nodes before", nil, key)
		}
	}
	if k.Datacenter != "" && asked[""] == 0 && asked[k.Datacenter] == 0 {
		return instance.Wrong(c, "no copies are kept in datacenter "+k.Datacenter+", which is the one that is asked",
			"add it: replication: {"+k.Datacenter+": 3}", nil, replicationKey)
	}
	return nil
}

func nodesText(n int) string {
	if n == 1 {
		return "is 1 node"
	}
	return fmt.Sprintf("are %d nodes", n)
}

// keepsEnough refuses a keyspace that cannot be used, or keeps fewer copies than the
// configuration wants: neither changes by itself.
func keepsEnough(c *clusterconfig.Config, keeps, there map[string]int) error {
	k := c.State.Cassandra
	if !k.Unsaid && doctor.KeepsFewer(keeps, k.Replication) {
		asked := doctor.Asked(keeps, k.Replication)
		if err := enoughNodes(c, asked, there); err != nil {
			return err
		}
		return instance.Wrong(c, keepsText(k, keeps), "write into the configuration what it keeps: "+
			doctor.Written(keeps)+raise(k.Keyspace, keeps, asked, there), nil, replicationKey)
	}
	r := doctor.JudgeReplication(keeps, nil, k.Datacenter, there, there)
	if r.Verdict != doctor.Bad {
		return nil
	}
	return instance.Wrong(c, "keyspace "+k.Keyspace+" is there and cannot be used: "+r.Seen,
		r.Mend+fewer(k.Keyspace, keeps, there),
		nil,
		replicationKey)
}

func keepsText(k *clusterconfig.Cassandra, keeps map[string]int) string {
	return fmt.Sprintf("keyspace %s is there and keeps %s, and the configuration asks for %s", k.Keyspace,
		doctor.CopiesText(keeps),
		doctor.CopiesText(doctor.Asked(keeps, k.Replication)))
}

// raise says how a keyspace keeps what is asked for, besides what it keeps already; "" if
// rows would leave a datacenter for that.
func raise(keyspace string, keeps, asked, there map[string]int) string {
	out := maps.Clone(asked)
	for dc, n := range keeps {
		if dc != "" || asked[""] > 0 {
			out[dc] = max(out[dc], n)
		}
	}
	for dc := range there { // without datacenters, rows may be in each
		if keeps[""] > 0 && asked[""] == 0 && asked[dc] == 0 {
			return ""
		}
	}
	alter, err := cassandra.AlterKeyspace(keyspace, out)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("; or have it keep what is asked for: `%s` by cqlsh, then `nodetool repair --full %s` on each "+
		"node; %s",
		alter, keyspace, doctor.StopHint)
}

// CheckCopies says that a cluster keeps more copies than its configuration asks for, as after
// datacenters were added: that harms nobody, and the file should say it.
func CheckCopies(ctx context.Context, c *clusterconfig.Config) error {
	if c.State.Cassandra == nil {
		return nil
	}
	cfg, err := instance.CassandraOf(c)
	if err != nil {
		return err
	}
	cfg.Keyspace = ""
	s, err := cassandra.OpenWithin(ctx, cfg)
	if err != nil {
		return instance.WrongCassandra(c, err)
	}
	defer s.Close()
	keeps, err := cassandra.Replication(ctx, s, c.State.Cassandra.Keyspace)
	if err != nil {
		return err
	}
	return keepsMore(c, keeps)
}

// keepsMore is CheckCopies of what a keyspace keeps.
func keepsMore(c *clusterconfig.Config, keeps map[string]int) error {
	k := c.State.Cassandra
	if k.Unsaid || doctor.SameCopies(keeps, k.Replication) || doctor.KeepsFewer(keeps, k.Replication) {
		return nil
	}
	return instance.Wrong(c, keepsText(k, keeps), "write into the configuration what it keeps: "+doctor.Written(keeps),
		nil,
		replicationKey)
}

// fewer says how a keyspace keeps no more copies than there are nodes, in the same
// datacenters; "" if that is not what helps.
func fewer(keyspace string, keeps, there map[string]int) string {
	out := map[string]int{}
	for dc, n := range keeps {
		switch nodes := there[dc]; {
		case dc == "":
		case nodes == 0:
			return ""
		default:
			out[dc] = min(n, nodes)
		}
	}
	if n := keeps[""]; n > 0 {
		out[""] = 0
		for _, nodes := range there {
			out[""] += nodes
		}
		out[""] = min(out[""], n)
	}
	alter, err := cassandra.AlterKeyspace(keyspace, out)
	if err != nil || maps.Equal(out, keeps) {
		return ""
	}
	return ": `" + alter + "` by cqlsh, and as many in the configuration"
}
