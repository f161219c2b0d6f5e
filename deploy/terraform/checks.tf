# What holds of every plan, and so of every `terraform test`.
locals {
  planned = concat(module.hub.plan, flatten(module.worker[*].plan), flatten(module.cassandra[*].plan))
  allowed = flatten(values(local.policies))
}

check "metadata" {
  assert {
    condition     = alltrue([for machine in local.planned : machine.metadata[0].http_tokens == "required" && machine.metadata[0].http_put_response_hop_limit == 1])
    error_message = "A machine answers IMDSv1, or others than itself."
  }
}

check "disks" {
  assert {
    condition     = alltrue(flatten(local.planned[*].disks))
    error_message = "A disk is not encrypted."
  }
}

check "ports" {
  assert {
    condition     = length(setsubtract(module.network.plan.ingress, concat([for cidr in var.admin_cidrs : "hub 22-22 ${cidr}"], local.doors))) == 0
    error_message = "More is let in than SSH of administrators, and what machines need of each other: ${join(", ", module.network.plan.ingress)}"
  }
  assert {
    condition     = sum([for machine in local.planned : machine.public ? 1 : 0]) == 1
    error_message = "Another machine than the hub has an address of the outside."
  }
}

locals {
  doors = ["worker 22-22 hub", "worker 9464-9464 hub", "cassandra 22-22 hub", "cassandra 9042-9042 hub", "cassandra 9042-9042 worker", "cassandra 7000-7000 cassandra"]
}

check "policies" {
  assert {
    condition     = !strcontains(jsonencode(flatten(local.allowed[*].Action)), "*")
    error_message = "A role may do more than what is named."
  }
  assert {
    condition     = alltrue([for resource in flatten(local.allowed[*].Resource) : resource == local.parameter || resource == local.bucket || startswith(resource, "${local.bucket}/")])
    error_message = "A role reaches more than one bucket and one parameter."
  }
}

check "first_start" {
  assert {
    condition     = alltrue([for machine in local.planned : machine.bytes <= 16384])
    error_message = "EC2 takes 16 KiB of user data."
  }
}
