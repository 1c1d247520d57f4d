"""For those who watch many nodes with Prometheus and Grafana: alert rules and a dashboard, made of rules and catalogue."""
