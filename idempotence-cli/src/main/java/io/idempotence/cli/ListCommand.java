package io.idempotence.cli;

import io.idempotence.server.IdempotenceAdmin;
import io.idempotence.server.storage.IdempotenceRecord;
import io.idempotence.server.storage.IdempotenceRecord.State;
import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** The command {@code list}, which lists records by their state. */
@Command(
        name = "list",
        sortOptions = false,
        description = "Lists records, in no particular order; without a state the abandoned and unknown ones. Reads all"
                + " records of the namespace in small steps.")
final class ListCommand extends OperatorCommand {
    @Option(names = "--abandoned", description = "Claimed, the lease is over, nothing was recorded.")
    private boolean abandoned;

    @Option(names = "--unknown", description = "The handler marked its outcome as unknown.")
    private boolean unknown;

    @Option(
            names = "--state",
            paramLabel = "<state>",
            split = ",",
            description = "in-progress, completed, released, unknown, abandoned; several with commas, or all.")
    private final List<String> states = new ArrayList<>();

    @Option(
            names = "--older-than",
            paramLabel = "<time>",
            description = "Only what has been abandoned or unknown for longer: 30s, 5m, 2h, 1d.")
    private @Nullable Duration olderThan;

    @Override
    void check() {
        if (olderThan != null && !wanted().stream().allMatch(State::isUncertain)) {
            throw new IllegalArgumentException(
                    "--older-than is for abandoned and unknown records only; the age of other records is not stored");
        }
    }

    @Override
    int run(IdempotenceAdmin admin, Output output) {
        Set<State> wanted = wanted();
        Progress progress = progress();
        admin.list().forEach(record -> {
            progress.step();
            if (wanted.contains(record.state()) && isOldEnough(record)) {
                output.row("", record);
            }
        });
        output.endOfRows();
        if (output.rows() == 0) {
            err().println("no such records in this namespace");
        }
        return OperatorTool.OK;
    }

    private boolean isOldEnough(IdempotenceRecord record) {
        return olderThan == null || record.uncertainFor().compareTo(olderThan) >= 0;
    }

    private Set<State> wanted() {
        Set<State> wanted = EnumSet.noneOf(State.class);
        states.forEach(name -> wanted.addAll(State.named(name)));
        if (abandoned) {
            wanted.add(State.ABANDONED);
        }
        if (unknown) {
            wanted.add(State.UNKNOWN);
        }
        return wanted.isEmpty() ? EnumSet.of(State.ABANDONED, State.UNKNOWN) : wanted;
    }
}
