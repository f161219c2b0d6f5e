# A network of one zone. Nothing is let in from outside but SSH to the hub from named addresses; the other machines
# have no address of the outside, and the bucket is reached without leaving.
variable "name" {
  type = string
}

variable "region" {
  type = string
}

variable "zone" {
  type = string
}

variable "admin_cidrs" {
  type = list(string)
}

variable "cluster" {
  description = "Whether there are machines beside the hub."
  type        = bool
}

locals {
  cidr    = "10.5.0.0/16"
  private = cidrsubnet(local.cidr, 8, 0)
  public  = cidrsubnet(local.cidr, 8, 1)
  groups  = var.cluster ? ["hub", "worker", "cassandra"] : ["hub"]

  # Who may reach which ports of whom.
  inside = var.cluster ? {
    worker-ssh       = { to = "worker", from = "hub", port = 22 }
    worker-metrics   = { to = "worker", from = "hub", port = 9464 }
    cassandra-ssh    = { to = "cassandra", from = "hub", port = 22 }
    cassandra-hub    = { to = "cassandra", from = "hub", port = 9042 }
    cassandra-worker = { to = "cassandra", from = "worker", port = 9042 }
    cassandra-nodes  = { to = "cassandra", from = "cassandra", port = 7000 }
  } : {}
  # Packages, services of AWS and time outside; all machines of the network inside.
  outside = merge([for group in local.groups : {
    "${group}-http"   = { group = group, cidr = "0.0.0.0/0", protocol = "tcp", from = 80, to = 80 }
    "${group}-https"  = { group = group, cidr = "0.0.0.0/0", protocol = "tcp", from = 443, to = 443 }
    "${group}-time"   = { group = group, cidr = "0.0.0.0/0", protocol = "udp", from = 123, to = 123 }
    "${group}-inside" = { group = group, cidr = local.cidr, protocol = "tcp", from = 1, to = 65535 }
  }]...)
}

resource "aws_vpc" "this" {
  cidr_block           = local.cidr
  enable_dns_hostnames = true
  tags                 = { Name = var.name }
}

# Whatever names no group is let nowhere.
resource "aws_default_security_group" "closed" {
  vpc_id = aws_vpc.this.id
}

resource "aws_internet_gateway" "this" {
  vpc_id = aws_vpc.this.id
  tags   = { Name = var.name }
}

resource "aws_subnet" "public" {
  vpc_id            = aws_vpc.this.id
  cidr_block        = local.public
  availability_zone = var.zone
  tags              = { Name = "${var.name}-public" }
}

resource "aws_route_table" "public" {
  vpc_id = aws_vpc.this.id
  route {
    cidr_block = "0.0.0.0/0"
    gateway_id = aws_internet_gateway.this.id
  }
  tags = { Name = "${var.name}-public" }
}

resource "aws_route_table_association" "public" {
  subnet_id      = aws_subnet.public.id
  route_table_id = aws_route_table.public.id
}

resource "aws_subnet" "private" {
  count             = var.cluster ? 1 : 0
  vpc_id            = aws_vpc.this.id
  cidr_block        = local.private
  availability_zone = var.zone
  tags              = { Name = "${var.name}-private" }
}

resource "aws_eip" "gateway" {
  count  = var.cluster ? 1 : 0
  domain = "vpc"
  tags   = { Name = var.name }
}

resource "aws_nat_gateway" "this" {
  count         = var.cluster ? 1 : 0
  allocation_id = aws_eip.gateway[0].id
  subnet_id     = aws_subnet.public.id
  tags          = { Name = var.name }
  depends_on    = [aws_internet_gateway.this]
}

resource "aws_route_table" "private" {
  count  = var.cluster ? 1 : 0
  vpc_id = aws_vpc.this.id
  route {
    cidr_block     = "0.0.0.0/0"
    nat_gateway_id = aws_nat_gateway.this[0].id
  }
  tags = { Name = "${var.name}-private" }
}

resource "aws_route_table_association" "private" {
  count          = var.cluster ? 1 : 0
  subnet_id      = aws_subnet.private[0].id
  route_table_id = aws_route_table.private[0].id
}

resource "aws_vpc_endpoint" "s3" {
  vpc_id            = aws_vpc.this.id
  service_name      = "com.amazonaws.${var.region}.s3"
  vpc_endpoint_type = "Gateway"
  route_table_ids   = concat([aws_route_table.public.id], aws_route_table.private[*].id)
  tags              = { Name = var.name }
}

resource "aws_security_group" "this" {
  for_each    = toset(local.groups)
  name        = "${var.name}-${each.key}"
  description = "${each.key} of ${var.name}"
  vpc_id      = aws_vpc.this.id
  tags        = { Name = "${var.name}-${each.key}" }
}

resource "aws_vpc_security_group_ingress_rule" "ssh" {
  for_each          = toset(var.admin_cidrs)
  security_group_id = aws_security_group.this["hub"].id
  description       = "SSH of administrators"
  cidr_ipv4         = each.key
  ip_protocol       = "tcp"
  from_port         = 22
  to_port           = 22
}

resource "aws_vpc_security_group_ingress_rule" "inside" {
  for_each                     = local.inside
  security_group_id            = aws_security_group.this[each.value.to].id
  referenced_security_group_id = aws_security_group.this[each.value.from].id
  description                  = each.key
  ip_protocol                  = "tcp"
  from_port                    = each.value.port
  to_port                      = each.value.port
}

resource "aws_vpc_security_group_egress_rule" "this" {
  for_each          = local.outside
  security_group_id = aws_security_group.this[each.value.group].id
  description       = each.key
  cidr_ipv4         = each.value.cidr
  ip_protocol       = each.value.protocol
  from_port         = each.value.from
  to_port           = each.value.to
}

output "public_subnet_id" {
  value = aws_subnet.public.id
}

output "private_subnet_id" {
  value = one(aws_subnet.private[*].id)
}

output "private_cidr" {
  value = local.private
}

output "security_groups" {
  value = { for group in ["hub", "worker", "cassandra"] : group => try(aws_security_group.this[group].id, null) }
}

# For checks of the plan, which see a module through its outputs only.
output "plan" {
  value = {
    ingress = concat(
      [for rule in aws_vpc_security_group_ingress_rule.ssh : "hub ${rule.from_port}-${rule.to_port} ${rule.cidr_ipv4}"],
      [for key, rule in aws_vpc_security_group_ingress_rule.inside : "${local.inside[key].to} ${rule.from_port}-${rule.to_port} ${local.inside[key].from}"],
    )
  }
}
