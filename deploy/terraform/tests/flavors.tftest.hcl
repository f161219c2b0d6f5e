# Every flavor without a cloud; checks.tf holds of each. The ten shapes are those published in 2025: cores, dollars an hour.
mock_provider "aws" {
  mock_data "aws_caller_identity" {
    defaults = { account_id = "123456789012" }
  }
}

variables {
  bucket             = "example-data"
  package            = { file = "thalweg_1.2.3_arm64.deb", sha256 = "0000000000000000000000000000000000000000000000000000000000000000" }
  cassandra          = { file = "apache-cassandra-5.0.8-bin.tar.gz", sha256 = "1111111111111111111111111111111111111111111111111111111111111111" }
  password_parameter = "/thalweg/cassandra"
  ssh_key_name       = "someone"
  admin_cidrs        = ["203.0.113.0/24"]
}

run "single" {
  variables {
    password_parameter = ""
    cassandra          = null
  }
  assert {
    condition     = output.output_total_cpus == 8 && output.output_total_ec2_hourly_cost == "$0.290000/hr" && output.output_besides_hourly_cost == "$0.0313/hr" && output.output_worker_instances == 0
    error_message = "${output.output_total_cpus} cores, ${output.output_total_ec2_hourly_cost}, ${output.output_besides_hourly_cost}"
  }
  assert {
    condition     = length(local.planned) == 1 && length(local.planned[0].disks) == 2 && module.network.plan.ingress == ["hub 22-22 203.0.113.0/24"]
    error_message = "single is one machine with two disks and one port: ${jsonencode(module.network.plan.ingress)}"
  }
  assert {
    condition     = !strcontains(jsonencode(local.policies), "ssm:")
    error_message = "There is no password."
  }
}

run "team" {
  variables {
    flavor = "team"
  }
  assert {
    condition     = output.output_total_cpus == 42 && output.output_total_ec2_hourly_cost == "$1.522500/hr" && output.output_besides_hourly_cost == "$0.1471/hr"
    error_message = "${output.output_total_cpus} cores, ${output.output_total_ec2_hourly_cost}, ${output.output_besides_hourly_cost}"
  }
  assert {
    condition     = length(local.planned) == 6 && length(flatten(local.planned[*].disks)) == 9 && length(module.network.plan.ingress) == 7
    error_message = "${length(local.planned)} machines, ${length(flatten(local.planned[*].disks))} disks"
  }
  assert {
    condition     = local.cluster == trimspace(file("tests/cluster.team.json"))
    error_message = local.cluster
  }
  assert {
    condition     = module.cassandra[0].settings[1] == file("tests/cassandra.team.yaml")
    error_message = module.cassandra[0].settings[1]
  }
}

run "aws_arm64_c7g_8_x4" {
  command = plan
  variables {
    flavor = "aws.arm64.c7g.8"
    nodes  = 4
  }
  assert {
    condition     = output.output_total_cpus == 42 && output.output_total_ec2_hourly_cost == "$1.814100/hr"
    error_message = "${output.output_total_cpus} cores, ${output.output_total_ec2_hourly_cost}, ${output.output_besides_hourly_cost}"
  }
  assert {
    condition     = output.output_cassandra_hosts == 4 && output.output_cassandra_total_cpus == 32 && output.output_worker_slots == 2 && output.output_worker_total_cpus == 8 && length(local.planned) == 9
    error_message = "${output.output_cassandra_total_cpus} cores of Cassandra, ${output.output_worker_total_cpus} of workers, ${length(local.planned)} machines"
  }
}

run "aws_arm64_c7g_8_x8" {
  command = plan
  variables {
    flavor = "aws.arm64.c7g.8"
    nodes  = 8
  }
  assert {
    condition     = output.output_total_cpus == 82 && output.output_total_ec2_hourly_cost == "$3.555700/hr"
    error_message = "${output.output_total_cpus} cores, ${output.output_total_ec2_hourly_cost}, ${output.output_besides_hourly_cost}"
  }
  assert {
    condition     = output.output_cassandra_hosts == 8 && output.output_cassandra_total_cpus == 64 && output.output_worker_slots == 2 && output.output_worker_total_cpus == 16 && length(local.planned) == 17
    error_message = "${output.output_cassandra_total_cpus} cores of Cassandra, ${output.output_worker_total_cpus} of workers, ${length(local.planned)} machines"
  }
}

run "aws_arm64_c7g_8_x16" {
  command = plan
  variables {
    flavor = "aws.arm64.c7g.8"
    nodes  = 16
  }
  assert {
    condition     = output.output_total_cpus == 162 && output.output_total_ec2_hourly_cost == "$7.038900/hr"
    error_message = "${output.output_total_cpus} cores, ${output.output_total_ec2_hourly_cost}, ${output.output_besides_hourly_cost}"
  }
  assert {
    condition     = output.output_cassandra_hosts == 16 && output.output_cassandra_total_cpus == 128 && output.output_worker_slots == 2 && output.output_worker_total_cpus == 32 && length(local.planned) == 33
    error_message = "${output.output_cassandra_total_cpus} cores of Cassandra, ${output.output_worker_total_cpus} of workers, ${length(local.planned)} machines"
  }
}

run "aws_arm64_c7g_8_x32" {
  command = plan
  variables {
    flavor = "aws.arm64.c7g.8"
    nodes  = 32
  }
  assert {
    condition     = output.output_total_cpus == 322 && output.output_total_ec2_hourly_cost == "$14.005300/hr"
    error_message = "${output.output_total_cpus} cores, ${output.output_total_ec2_hourly_cost}, ${output.output_besides_hourly_cost}"
  }
  assert {
    condition     = output.output_cassandra_hosts == 32 && output.output_cassandra_total_cpus == 256 && output.output_worker_slots == 2 && output.output_worker_total_cpus == 64 && length(local.planned) == 65
    error_message = "${output.output_cassandra_total_cpus} cores of Cassandra, ${output.output_worker_total_cpus} of workers, ${length(local.planned)} machines"
  }
}

run "aws_arm64_c7g_16_x4" {
  command = plan
  variables {
    flavor = "aws.arm64.c7g.16"
    nodes  = 4
  }
  assert {
    condition     = output.output_total_cpus == 82 && output.output_total_ec2_hourly_cost == "$3.555700/hr"
    error_message = "${output.output_total_cpus} cores, ${output.output_total_ec2_hourly_cost}, ${output.output_besides_hourly_cost}"
  }
  assert {
    condition     = output.output_cassandra_hosts == 4 && output.output_cassandra_total_cpus == 64 && output.output_worker_slots == 4 && output.output_worker_total_cpus == 16 && length(local.planned) == 9
    error_message = "${output.output_cassandra_total_cpus} cores of Cassandra, ${output.output_worker_total_cpus} of workers, ${length(local.planned)} machines"
  }
}

run "aws_arm64_c7g_16_x8" {
  command = plan
  variables {
    flavor = "aws.arm64.c7g.16"
    nodes  = 8
  }
  assert {
    condition     = output.output_total_cpus == 162 && output.output_total_ec2_hourly_cost == "$7.038900/hr"
    error_message = "${output.output_total_cpus} cores, ${output.output_total_ec2_hourly_cost}, ${output.output_besides_hourly_cost}"
  }
  assert {
    condition     = output.output_cassandra_hosts == 8 && output.output_cassandra_total_cpus == 128 && output.output_worker_slots == 4 && output.output_worker_total_cpus == 32 && length(local.planned) == 17
    error_message = "${output.output_cassandra_total_cpus} cores of Cassandra, ${output.output_worker_total_cpus} of workers, ${length(local.planned)} machines"
  }
}

run "aws_arm64_c7g_16_x16" {
  command = plan
  variables {
    flavor = "aws.arm64.c7g.16"
    nodes  = 16
  }
  assert {
    condition     = output.output_total_cpus == 322 && output.output_total_ec2_hourly_cost == "$14.005300/hr"
    error_message = "${output.output_total_cpus} cores, ${output.output_total_ec2_hourly_cost}, ${output.output_besides_hourly_cost}"
  }
  assert {
    condition     = output.output_cassandra_hosts == 16 && output.output_cassandra_total_cpus == 256 && output.output_worker_slots == 4 && output.output_worker_total_cpus == 64 && length(local.planned) == 33
    error_message = "${output.output_cassandra_total_cpus} cores of Cassandra, ${output.output_worker_total_cpus} of workers, ${length(local.planned)} machines"
  }
}

run "aws_arm64_c7g_32_x4" {
  command = plan
  variables {
    flavor = "aws.arm64.c7g.32"
    nodes  = 4
  }
  assert {
    condition     = output.output_total_cpus == 162 && output.output_total_ec2_hourly_cost == "$7.038500/hr"
    error_message = "${output.output_total_cpus} cores, ${output.output_total_ec2_hourly_cost}, ${output.output_besides_hourly_cost}"
  }
  assert {
    condition     = output.output_cassandra_hosts == 4 && output.output_cassandra_total_cpus == 128 && output.output_worker_slots == 8 && output.output_worker_total_cpus == 32 && length(local.planned) == 9
    error_message = "${output.output_cassandra_total_cpus} cores of Cassandra, ${output.output_worker_total_cpus} of workers, ${length(local.planned)} machines"
  }
}

run "aws_arm64_c7g_32_x8" {
  command = plan
  variables {
    flavor = "aws.arm64.c7g.32"
    nodes  = 8
  }
  assert {
    condition     = output.output_total_cpus == 322 && output.output_total_ec2_hourly_cost == "$14.004500/hr"
    error_message = "${output.output_total_cpus} cores, ${output.output_total_ec2_hourly_cost}, ${output.output_besides_hourly_cost}"
  }
  assert {
    condition     = output.output_cassandra_hosts == 8 && output.output_cassandra_total_cpus == 256 && output.output_worker_slots == 8 && output.output_worker_total_cpus == 64 && length(local.planned) == 17
    error_message = "${output.output_cassandra_total_cpus} cores of Cassandra, ${output.output_worker_total_cpus} of workers, ${length(local.planned)} machines"
  }
}

run "aws_arm64_c7g_64_x4" {
  command = plan
  variables {
    flavor = "aws.arm64.c7g.64"
    nodes  = 4
  }
  assert {
    condition     = output.output_total_cpus == 322 && output.output_total_ec2_hourly_cost == "$14.004500/hr"
    error_message = "${output.output_total_cpus} cores, ${output.output_total_ec2_hourly_cost}, ${output.output_besides_hourly_cost}"
  }
  assert {
    condition     = output.output_cassandra_hosts == 4 && output.output_cassandra_total_cpus == 256 && output.output_worker_slots == 16 && output.output_worker_total_cpus == 64 && length(local.planned) == 9
    error_message = "${output.output_cassandra_total_cpus} cores of Cassandra, ${output.output_worker_total_cpus} of workers, ${length(local.planned)} machines"
  }
}

run "without_cassandra" {
  command = plan
  variables {
    flavor             = "team"
    cassandra          = null
    password_parameter = "secret"
    admin_cidrs        = ["0.0.0.0/0"]
    bucket             = "*"
  }
  expect_failures = [var.cassandra, var.password_parameter, var.admin_cidrs, var.bucket]
}

run "unknown" {
  command = plan
  variables {
    flavor      = "large"
    nodes       = 5
    admin_cidrs = ["::/0"]
    region      = "us-east-1; reboot"
  }
  expect_failures = [var.flavor, var.nodes, var.admin_cidrs, var.region]
}
