package io.idempotence.cli;

import com.tngtech.archunit.core.importer.ImportOption;
import com.tngtech.archunit.junit.AnalyzeClasses;
import com.tngtech.archunit.junit.ArchTest;
import com.tngtech.archunit.lang.ArchRule;
import io.idempotence.ClassCycles;

/** The dependencies between the classes of this module, which have no cycles. */
@AnalyzeClasses(packages = "io.idempotence.cli", importOptions = ImportOption.DoNotIncludeTests.class)
class ArchitectureTest {
    @ArchTest
    static final ArchRule classesHaveNoCycles = ClassCycles.none();
}
