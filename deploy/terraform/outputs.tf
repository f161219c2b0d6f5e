# Under the names of the published notes; slots and memory stand in the place of threads and writers.
output "output_hub_public_ip" {
  value = module.hub.public_ip
}

output "output_worker_cpus" {
  value = format("%d cpus ($%f/hr)", local.worker.cpus, local.worker.usd)
}

output "output_worker_instances" {
  value = local.flavor.workers
}

output "output_worker_total_cpus" {
  value = local.worker.cpus * local.flavor.workers
}

output "output_worker_slots" {
  description = "Batches that a worker computes at once at most: its cores. It finds the best number itself."
  value       = local.worker.cpus
}

output "output_worker_memory" {
  description = "What batches of a worker may take, GiB: 60 % of the machine's."
  value       = local.worker.memory_gib * 6 / 10
}

output "output_worker_slots_per_cassandra_cpu" {
  value = local.alone ? 0 : local.worker.cpus * local.flavor.workers / (local.cassandra.cpus * local.flavor.cassandra_hosts)
}

output "output_cassandra_cpus" {
  value = format("%d cpus ($%f/hr)", local.cassandra.cpus, local.cassandra.usd)
}

output "output_cassandra_hosts" {
  value = local.flavor.cassandra_hosts
}

output "output_cassandra_total_cpus" {
  value = local.cassandra.cpus * local.flavor.cassandra_hosts
}

output "output_total_cpus" {
  value = local.hub.cpus + local.worker.cpus * local.flavor.workers + local.cassandra.cpus * local.flavor.cassandra_hosts
}

output "output_total_ec2_hourly_cost" {
  value = format("$%f/hr", local.hub.usd + local.worker.usd * local.flavor.workers + local.cassandra.usd * local.flavor.cassandra_hosts)
}

output "output_besides_hourly_cost" {
  description = "Address, gateway and disks; not requests and traffic."
  value       = format("$%.4f/hr", local.besides_usd)
}
