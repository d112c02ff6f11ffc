/* The client of the storage bench: as little of its own as possible between two system calls, so that what is timed
 * is the filesystem. Prints one JSON object; ends with 1 and a sentence when something failed or a page was wrong.
 *
 *   sequential PATH NUMBER SIZE READERS     each reader reads the whole file, 1 MiB at a time
 *   random PATH NUMBER SIZE READERS SECONDS 4 KiB preads at random pages for so long
 *   small LIST SIZE READERS                 open, read, close; the readers share the list
 *   stat LIST READERS PASSES
 *   readdir DIRECTORY COUNT PASSES
 *   list DIRECTORY COUNT PASSES             readdir and lstat of every entry, as ls -l does
 *   write PATH NUMBER SIZE FILLER           1 MiB at a time, and close
 *   writes DIRECTORY COUNT SIZE FILLER      create, write, close so many files
 *
 * A LIST holds lines "NUMBER PATH". FILLER is a file with the block of random bytes (see content.py).
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096ULL
#define BLOCK (1ULL << 20)
#define MOST_READERS 64

struct file {
    uint64_t number;
    char *path;
};

static struct file *files;
static uint64_t file_count;
static char **args;
static uint64_t readers = 1;

static void fail(const char *what, const char *path) {
    fprintf(stderr, "%s %s: %s\n", what, path, strerror(errno));
    exit(1);
}

static uint64_t number_of(const char *text) { return strtoull(text, NULL, 10); }

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static uint64_t mixed(uint64_t value) {
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9ULL;
    value = (value ^ (value >> 27)) * 0x94D049BB133111EBULL;
    return value ^ (value >> 31);
}

static uint64_t stamp(uint64_t number, uint64_t page) {
    return mixed((number << 32) + page + 0x9E3779B97F4A7C15ULL);
}

static char *block_buffer(void) {
    char *buffer;
    if (posix_memalign((void **)&buffer, PAGE, BLOCK)) fail("allocate", "a block");
    memset(buffer, 0, BLOCK); /* page faults belong before the clock */
    return buffer;
}

static void check(const char *path, uint64_t number, uint64_t start, const char *data, uint64_t size) {
    for (uint64_t at = 0; at + sizeof(uint64_t) <= size; at += PAGE) {
        uint64_t got;
        memcpy(&got, data + at, sizeof got);
        if (got != stamp(number, (start + at) / PAGE)) {
            fprintf(stderr, "WRONG BYTES: %s, page %llu\n", path, (unsigned long long)((start + at) / PAGE));
            exit(1);
        }
    }
}

static void read_fully(int fd, const char *path, char *data, uint64_t size) {
    for (uint64_t done = 0; done < size;) {
        ssize_t got = read(fd, data + done, size - done);
        if (got < 0) fail("read", path);
        if (got == 0) {
            fprintf(stderr, "WRONG BYTES: %s ends too early\n", path);
            exit(1);
        }
        done += (uint64_t)got;
    }
}

static void write_fully(int fd, const char *path, const char *data, uint64_t size) {
    for (uint64_t done = 0; done < size;) {
        ssize_t put = write(fd, data + done, size - done);
        if (put < 0) fail("write", path);
        done += (uint64_t)put;
    }
}

static void read_list(const char *path) {
    FILE *list = fopen(path, "r");
    char *line = NULL;
    size_t room = 0;
    if (!list) fail("open", path);
    while (getline(&line, &room, list) > 0) {
        char *rest;
        line[strcspn(line, "\n")] = 0;
        if (file_count % 1024 == 0) files = realloc(files, (file_count + 1024) * sizeof *files);
        if (!files) fail("allocate", path);
        files[file_count].number = strtoull(line, &rest, 10);
        files[file_count].path = strdup(rest + 1);
        if (!files[file_count++].path) fail("allocate", path);
    }
    free(line);
    fclose(list);
}

/* The workloads: what one reader does. Each returns its operations. */

static uint64_t sequential(uint64_t reader, char *buffer) {
    uint64_t number = number_of(args[1]), size = number_of(args[2]);
    int fd = open(args[0], O_RDONLY | O_CLOEXEC);
    (void)reader;
    if (fd < 0) fail("open", args[0]);
    for (uint64_t start = 0; start < size; start += BLOCK) {
        uint64_t here = size - start < BLOCK ? size - start : BLOCK;
        read_fully(fd, args[0], buffer, here);
        check(args[0], number, start, buffer, here);
    }
    close(fd);
    return size / BLOCK;
}

static uint64_t at_random(uint64_t reader, char *buffer) {
    uint64_t number = number_of(args[1]), pages = number_of(args[2]) / PAGE, done = 0;
    double until = now() + strtod(args[4], NULL);
    int fd = open(args[0], O_RDONLY | O_CLOEXEC);
    if (fd < 0) fail("open", args[0]);
    do {
        for (int burst = 0; burst < 16; burst++, done++) {
            uint64_t page = mixed((reader << 48) + done) % pages;
            if (pread(fd, buffer, PAGE, (off_t)(page * PAGE)) != (ssize_t)PAGE) fail("pread", args[0]);
            check(args[0], number, page * PAGE, buffer, PAGE);
        }
    } while (now() < until);
    close(fd);
    return done;
}

static uint64_t small(uint64_t reader, char *buffer) {
    uint64_t size = number_of(args[1]), done = 0;
    for (uint64_t i = reader; i < file_count; i += readers, done++) {
        int fd = open(files[i].path, O_RDONLY | O_CLOEXEC);
        if (fd < 0) fail("open", files[i].path);
        read_fully(fd, files[i].path, buffer, size);
        close(fd);
        check(files[i].path, files[i].number, 0, buffer, size);
    }
    return done;
}

static uint64_t stats(uint64_t reader, char *buffer) {
    uint64_t passes = number_of(args[2]), done = 0;
    (void)buffer;
    for (uint64_t pass = 0; pass < passes; pass++) {
        for (uint64_t i = reader; i < file_count; i += readers, done++) {
            struct stat found;
            if (stat(files[i].path, &found)) fail("stat", files[i].path);
        }
    }
    return done;
}

static uint64_t entries(int with_attributes) {
    uint64_t wanted = number_of(args[1]), passes = number_of(args[2]), done = 0;
    for (uint64_t pass = 0; pass < passes; pass++) {
        uint64_t seen = 0;
        DIR *directory = opendir(args[0]);
        struct dirent *entry;
        if (!directory) fail("opendir", args[0]);
        while ((entry = readdir(directory))) {
            struct stat found;
            if (entry->d_name[0] == '.') continue;
            if (with_attributes && fstatat(dirfd(directory), entry->d_name, &found, AT_SYMLINK_NOFOLLOW))
                fail("lstat", entry->d_name);
            seen++;
        }
        closedir(directory);
        if (seen != wanted) {
            fprintf(stderr, "WRONG BYTES: %s has %llu entries\n", args[0], (unsigned long long)seen);
            exit(1);
        }
        done += seen;
    }
    return done;
}

static uint64_t names(uint64_t reader, char *buffer) {
    (void)reader, (void)buffer;
    return entries(0);
}

static uint64_t long_list(uint64_t reader, char *buffer) {
    (void)reader, (void)buffer;
    return entries(1);
}

static void write_file(const char *path, uint64_t number, uint64_t size, char *buffer) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0) fail("create", path);
    for (uint64_t start = 0; start < size; start += BLOCK) {
        uint64_t here = size - start < BLOCK ? size - start : BLOCK;
        for (uint64_t at = 0; at + sizeof(uint64_t) <= here; at += PAGE) {
            uint64_t value = stamp(number, (start + at) / PAGE);
            memcpy(buffer + at, &value, sizeof value);
        }
        write_fully(fd, path, buffer, here);
    }
    if (close(fd)) fail("close", path);
}

static void load_filler(const char *path, char *buffer) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) fail("open", path);
    read_fully(fd, path, buffer, BLOCK);
    close(fd);
}

static uint64_t write_one(uint64_t reader, char *buffer) {
    (void)reader;
    write_file(args[0], number_of(args[1]), number_of(args[2]), buffer);
    return number_of(args[2]) / BLOCK;
}

static uint64_t write_many(uint64_t reader, char *buffer) {
    uint64_t count = number_of(args[1]);
    (void)reader;
    for (uint64_t number = 0; number < count; number++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/f%06llu", args[0], (unsigned long long)number);
        write_file(path, number, number_of(args[2]), buffer);
    }
    return count;
}

/* All readers wait behind one pipe, so that starting them is not timed. */
static void run(uint64_t (*work)(uint64_t, char *), const char *filler) {
    uint64_t *done = mmap(NULL, MOST_READERS * sizeof *done, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    uint64_t total = 0;
    int ready[2], gate[2], status, failed = 0;
    char byte = 0;
    struct rusage used;
    if (done == MAP_FAILED || pipe(ready) || pipe(gate)) fail("prepare", "the readers");
    for (uint64_t reader = 0; reader < readers; reader++) {
        pid_t child = fork();
        if (child < 0) fail("fork", "a reader");
        if (child == 0) {
            char *buffer = block_buffer();
            if (filler) load_filler(filler, buffer);
            close(gate[1]);
            if (write(ready[1], &byte, 1) != 1 || read(gate[0], &byte, 1) != 0) fail("wait at", "the gate");
            done[reader] = work(reader, buffer);
            _exit(0);
        }
    }
    for (uint64_t reader = 0; reader < readers; reader++)
        if (read(ready[0], &byte, 1) != 1) fail("wait for", "a reader");
    double began = now();
    close(gate[1]);
    while (wait(&status) > 0) failed |= status;
    double seconds = now() - began;
    if (failed) exit(1);
    for (uint64_t reader = 0; reader < readers; reader++) total += done[reader];
    getrusage(RUSAGE_CHILDREN, &used);
    printf("{\"seconds\": %.9f, \"operations\": %llu, \"cpu_s\": %.6f}\n", seconds, (unsigned long long)total,
           (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
               (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6);
}

static void set_readers(const char *text) {
    readers = number_of(text);
    if (readers < 1 || readers > MOST_READERS) {
        fprintf(stderr, "from 1 to %d readers, not %s\n", MOST_READERS, text);
        exit(2);
    }
}

int main(int argc, char **argv) {
    const char *command = argc > 1 ? argv[1] : "";
    args = argv + 2;
    argc -= 2;
    if (!strcmp(command, "sequential") && argc == 4) {
        set_readers(args[3]);
        run(sequential, NULL);
    } else if (!strcmp(command, "random") && argc == 5) {
        set_readers(args[3]);
        run(at_random, NULL);
    } else if (!strcmp(command, "small") && argc == 3) {
        read_list(args[0]);
        set_readers(args[2]);
        run(small, NULL);
    } else if (!strcmp(command, "stat") && argc == 3) {
        read_list(args[0]);
        set_readers(args[1]);
        run(stats, NULL);
    } else if (!strcmp(command, "readdir") && argc == 3) {
        run(names, NULL);
    } else if (!strcmp(command, "list") && argc == 3) {
        run(long_list, NULL);
    } else if (!strcmp(command, "write") && argc == 4) {
        run(write_one, args[3]);
    } else if (!strcmp(command, "writes") && argc == 4) {
        run(write_many, args[3]);
    } else {
        fprintf(stderr, "no such command, or not its arguments: %s\n", command);
        return 2;
    }
    return 0;
}
