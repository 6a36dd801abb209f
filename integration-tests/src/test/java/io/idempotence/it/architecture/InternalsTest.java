package io.idempotence.it.architecture;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;

import com.tngtech.archunit.junit.AnalyzeClasses;
import com.tngtech.archunit.junit.ArchTest;
import com.tngtech.archunit.lang.ArchRule;

/**
 * Packages that are public to the compiler and not to users. The tests of this module are users: they are looked at, too.
 */
@AnalyzeClasses(packages = "io.idempotence")
class InternalsTest {
    @ArchTest
    static final ArchRule whatTheModulesShareIsUsedByThemOnly = noClasses()
            .that()
            .resideOutsideOfPackages(
                    "io.idempotence", "io.idempotence.internal..", "io.idempotence.client..", "io.idempotence.server..")
            .should()
            .dependOnClassesThat()
            .resideInAPackage("io.idempotence.internal..");

    @ArchTest
    static final ArchRule retryMachineryIsUsedByTheClientOnly = noClasses()
            .that()
            .resideOutsideOfPackage("io.idempotence.client..")
            .should()
            .dependOnClassesThat()
            .resideInAPackage("io.idempotence.client.internal..");
}
