package io.idempotence.cli;

import io.idempotence.server.storage.IdempotenceRecord;
import java.util.Optional;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** A command that changes one record, and asks a person first. */
abstract class ChangingCommand extends OperatorCommand {
    @Mixin
    private final RecordOptions record = new RecordOptions();

    @Option(
            names = {"-y", "--yes"},
            description = "Do not ask.")
    private boolean yes;

    @Override
    Optional<String> namespaceOfKey() {
        return record.namespaceOfKey();
    }

    @Override
    void check() {
        record.check();
        if (!yes && !tool().terminal().isThere()) {
            throw new IllegalArgumentException("there is no terminal to ask on before a record is changed:"
                    + " look at it with find, then add --yes");
        }
    }

    RecordOptions record() {
        return record;
    }

    /**
     * Whether a person confirms the change, or {@code --yes} was given. The record and the question go to standard error, because standard
     * output is for the result.
     */
    boolean agreed(Optional<IdempotenceRecord> seen, String question) {
        if (yes) {
            return true;
        }
        seen.ifPresent(shown -> new Output(err(), false).row("", shown));
        err().flush();
        boolean agreed = tool().terminal().agrees(question);
        if (!agreed) {
            err().println("nothing was changed");
        }
        return agreed;
    }
}
