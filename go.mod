module github.com/terracecache/terrace

go 1.26.0
